# SPDX-License-Identifier: Apache-2.0
"""Turns SmartStage on in every session, as TF_STAGING_SMART_STAGE=1 does, and makes it stage as much as it can.

TensorFlow's own tests, run in this way, show what SmartStage changes for programs that know nothing of it. Few of them
train, and SmartStage leaves in the step what no update and no marked node needs. So each graph gets a marked node
behind every tensor that depends on a record and that nothing uses.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator
from unittest import mock

import tensorflow as tf
from tensorflow.python.client import session
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops
from tensorflow.python.ops import array_ops

from tensorflow_staging.python.automatic import setting

# The names of the ops that yield records begin with one of these.
_SOURCES = ("IteratorGetNext", "MultiDeviceIteratorGetNext", "QueueDequeue", "ReaderRead")


class _Graph:
  """What is known of a graph: which of its operations depend on records."""

  def __init__(self):
    self._lock = threading.RLock()
    # The names of those that depend on records.
    self._names: set[str] = set()
    # Those of them that are not marked yet.
    self._leaves: list[ops.Operation] = []
    self._seen = 0

  def update(self, graph: ops.Graph) -> None:
    """Looks at the operations that the graph got since the last call, and marks what they lead to."""
    with self._lock:
      for operation in graph.get_operations()[self._seen:]:
        try:
          before = [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]
        except (AssertionError, KeyError):
          break  # Another thread is about to add it; the next call looks at it.
        self._seen += 1
        if operation.name in self._names:
          continue  # Marked.
        if operation.type.startswith(_SOURCES) or any(other.name in self._names for other in before):
          self._names.add(operation.name)
          self._leaves.append(operation)
      if not graph.finalized:
        self._mark_leaves(graph)

  def _mark_leaves(self, graph: ops.Graph) -> None:
    with graph.as_default(), ops.control_dependencies(None), ops.device(None), ops.name_scope(None):
      for operation in self._leaves:
        # A node outside of a conditional or loop cannot use a tensor that is inside.
        if operation._control_flow_context is not None:
          continue
        for tensor in operation.outputs:
          if not tensor.consumers() and tensor.dtype not in (dtypes.resource, dtypes.variant):
            marked = array_ops.identity(tensor, name="smart_sessions/marked")
            tf.train.mark_target_node(marked)
            self._names.add(marked.op.name)
    self._leaves.clear()


@contextlib.contextmanager
def everywhere() -> Iterator[None]:
  """Changes TensorFlow's sessions as long as the context is open."""
  extend_graph = session.BaseSession._extend_graph
  graphs: weakref.WeakKeyDictionary[ops.Graph, _Graph] = weakref.WeakKeyDictionary()

  def extend_marked_graph(self: session.BaseSession) -> None:
    graphs.setdefault(self.graph, _Graph()).update(self.graph)
    extend_graph(self)

  with (
      mock.patch.dict(os.environ, {setting.VARIABLE: setting.Setting.ON.value}),
      mock.patch.object(session.BaseSession, "_extend_graph", extend_marked_graph),
  ):
    yield
