# SPDX-License-Identifier: Apache-2.0
"""Turns SmartStage on in every session, makes it stage as much as it can, and starts the stages when a run needs them.

TensorFlow's own tests, run in this way, show what SmartStage changes for programs that know nothing of it. Few of them
train, and SmartStage leaves in the step what no update and no marked node needs. So each graph gets a marked node
behind every tensor that depends on a record and that nothing uses.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from unittest import mock

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session
from tensorflow.python.eager import context
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops
from tensorflow.python.ops import array_ops
from tensorflow.python.util import nest

# The names of the ops that yield records begin with one of these.
_SOURCES = ("IteratorGetNext", "MultiDeviceIteratorGetNext", "QueueDequeue", "ReaderRead")


def _with_smart_stage(config: config_pb2.ConfigProto) -> config_pb2.ConfigProto:
  """Returns a copy of the configuration with SmartStage, unless it places pruned graphs, which excludes SmartStage."""
  changed = config_pb2.ConfigProto()
  changed.CopyFrom(config)
  if not changed.graph_options.place_pruned_graph:
    changed.graph_options.optimizer_options.do_smart_stage = True
  return changed


def _operations(graph: ops.Graph, fetches: Any) -> list[ops.Operation]:
  """Returns the operations behind a structure of fetches, without those that the session itself rejects."""
  found = []
  for leaf in nest.flatten(fetches, expand_composites=True):
    try:
      element = graph.as_graph_element(leaf)
    except (KeyError, TypeError, ValueError):
      continue
    found.append(element if isinstance(element, ops.Operation) else element.op)
  return found


class _Graph:
  """What is known of a graph: which of its operations depend on records."""

  def __init__(self):
    self._lock = threading.RLock()
    # The names of those that depend on records.
    self._names: set[str] = set()
    # Those of them that are not marked yet.
    self._leaves: list[ops.Operation] = []
    self._seen = 0
    self.sources = 0

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
        is_source = operation.type.startswith(_SOURCES)
        self.sources += is_source
        if is_source or self.depend_on_records(before):
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

  def depend_on_records(self, operations: Iterable[ops.Operation]) -> bool:
    return any(operation.name in self._names for operation in operations)


@contextlib.contextmanager
def everywhere() -> Iterator[None]:
  """Patches TensorFlow's sessions as long as the context is open."""
  base = session.BaseSession
  init, extend_graph, do_run, make_callable = base.__init__, base._extend_graph, base._do_run, base.make_callable
  hook = tf.make_prefetch_hook()
  graphs: weakref.WeakKeyDictionary[ops.Graph, _Graph] = weakref.WeakKeyDictionary()
  # The number of sources that the graph had when a session started its stages.
  started: weakref.WeakKeyDictionary[session.BaseSession, int] = weakref.WeakKeyDictionary()

  def update(self: session.BaseSession) -> _Graph:
    known = graphs.setdefault(self.graph, _Graph())
    known.update(self.graph)
    return known

  def start_if_needed(self: session.BaseSession, fetched: Iterable[ops.Operation]) -> None:
    known = update(self)
    if self._closed or started.get(self) == known.sources or not known.depend_on_records(fetched):
      return
    if self in started:
      hook.end(self)
    started[self] = known.sources
    hook.after_create_session(self)

  def init_with_smart_stage(self, target="", graph=None, config=None):
    # As the session chooses it.
    chosen = context.context().config if config is None else config
    if isinstance(chosen, config_pb2.ConfigProto):
      config = _with_smart_stage(chosen)
    init(self, target, graph, config)

  def extend_marked_graph(self) -> None:
    update(self)
    extend_graph(self)

  def run_with_stages(self, handle, target_list, fetch_list, *arguments):
    start_if_needed(self, [*target_list, *(tensor.op for tensor in fetch_list)])
    return do_run(self, handle, target_list, fetch_list, *arguments)

  def make_callable_with_stages(self, fetches, *arguments, **keywords) -> Callable[..., Any]:
    call = make_callable(self, fetches, *arguments, **keywords)

    def call_with_stages(*call_arguments, **call_keywords):
      start_if_needed(self, _operations(self.graph, fetches))
      return call(*call_arguments, **call_keywords)

    return call_with_stages

  with (
      mock.patch.object(base, "__init__", init_with_smart_stage),
      mock.patch.object(base, "_extend_graph", extend_marked_graph),
      mock.patch.object(base, "_do_run", run_with_stages),
      mock.patch.object(base, "make_callable", make_callable_with_stages),
  ):
    yield
