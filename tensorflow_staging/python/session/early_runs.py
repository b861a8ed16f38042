# SPDX-License-Identifier: Apache-2.0
"""Starts the stages of a monitored session when a run needs them before the hook is called.

A monitored session runs ops before it calls its hooks, and other hooks run ops before ours is called. These may depend
on a record: under `tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS))`, for example, the ops that
`tf.compat.v1.train.SyncReplicasOptimizer` makes for the creation of the session do. Without a stage, they take an
element; with one, they take a record, so the stages have to run.

Queue runners, which a monitored session starts before its hooks, run a callable of the session; so may other hooks. If
their records had no stage for 5 seconds, as while an earlier hook loads a model, they would fail.

Other runs do not start the stages: what they initialise or restore, a region may read.
"""

import contextlib
import threading
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib
from tensorflow.python.training import session_run_hook

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.session import watched_runs
from tensorflow_staging.python.smart_stage import optimizer_options

# What SmartStage may run ahead, and with it all that depends on it.
SOURCE_OPS = (
    "IteratorGetNext", "IteratorGetNextAsOptional", "IteratorGetNextSync", "MultiDeviceIteratorGetNextFromShard")

# What starts the stages of a session that a thread creates now, if it creates one for a hook.
_created_now = threading.local()

_Start = Callable[[session_lib.BaseSession], None]


@contextlib.contextmanager
def of_new_session(hooks: Iterable[session_run_hook.SessionRunHook]) -> Iterator[None]:
  """Watches the runs of the sessions that the calling thread creates inside the block.

  Args:
    hooks: The hooks of these sessions. If one of them has a method `start_early`, it is called with the session before
      the first run that needs a record.
  """
  _created_now.start = next((hook.start_early for hook in hooks if hasattr(hook, "start_early")), None)
  try:
    yield
  finally:
    _created_now.start = None


def watch(session: session_lib.BaseSession) -> None:
  """Watches the runs of a new session if it is created inside of `of_new_session`."""
  start = getattr(_created_now, "start", None)
  if start is not None:
    watched_runs.watch(session, _EarlyStart(start))


def is_watched(session: session_lib.BaseSession) -> bool:
  """Returns whether a hook will start the stages of a session, and the session's runs are watched until then."""
  return isinstance(watched_runs.watcher_of(session), _EarlyStart)


class _EarlyStart:
  """Starts the stages before a run that needs a record."""

  def __init__(self, start: _Start):
    self._start = start

  def __call__(
      self, session: session_lib.BaseSession, operations: list[ops.Operation],
      feeds: dict[tensor_lib.Tensor, Any]) -> None:
    if needs_record(session, operations, feeds):
      self._start(session)


def needs_record(
    session: session_lib.BaseSession, operations: Iterable[ops.Operation], feeds: dict[tensor_lib.Tensor, Any]) -> bool:
  """Returns whether a run takes a record, or an element that SmartStage may have made a part of one.

  Args:
    session: The session.
    operations: What the run fetches and its targets.
    feeds: What is fed, as keys.
  """
  return depends_on(
      (vocabulary.TAKE_OP, *(SOURCE_OPS if _may_have_own_stages(session) else ())), operations, feeds)


def depends_on(types: Sequence[str], operations: Iterable[ops.Operation], feeds: dict[tensor_lib.Tensor, Any]) -> bool:
  """Returns whether a run executes an op of one of these types.

  Args:
    types: The types.
    operations: What the run fetches and its targets.
    feeds: What is fed, as keys.
  """
  fed = {tensor.ref() if isinstance(tensor, tensor_lib.Tensor) else tensor for tensor in feeds}
  visited = set(operations)
  waiting = list(visited)
  while waiting:
    operation = waiting.pop()
    if operation.type in types:
      return True
    before = {tensor.op for tensor in operation.inputs if tensor.ref() not in fed}
    new = (before | set(operation.control_inputs)) - visited
    visited |= new
    waiting.extend(new)
  return False


def _may_have_own_stages(session: session_lib.BaseSession) -> bool:
  # A server may have these options in its own configuration.
  return optimizer_options.makes_stages(session._config or config_pb2.ConfigProto()) or bool(session.sess_str)
