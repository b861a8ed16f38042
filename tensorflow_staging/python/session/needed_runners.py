# SPDX-License-Identifier: Apache-2.0
"""Finds the runners that a session needs, for its manual stages and for the stages that SmartStage makes."""

import weakref

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import errors
from tensorflow.python.framework import ops
from tensorflow.python.platform import tf_logging

from tensorflow_staging.python import api_name
from tensorflow_staging.python import messages
from tensorflow_staging.python.checkpoints import iterator_saveable
from tensorflow_staging.python.pywrap import _pywrap_staging
from tensorflow_staging.python.smart_stage import optimizer_options
from tensorflow_staging.python.stages import stage_graph
from tensorflow_staging.python.thread_pools import too_few_threads

# Ten years.
_NO_TIMEOUT_MILLIS = 10 * 365 * 24 * 3600 * 1000

# The warnings that have been logged, in their order.
_reported: "weakref.WeakKeyDictionary[ops.Graph, list[str]]" = weakref.WeakKeyDictionary()


def of_session(session: session_lib.BaseSession) -> list[bytes]:
  """Finds the runners of a session.

  The session itself says which stages it has: it made them when it received the graph.

  Args:
    session: The session, which must already have the whole graph.

  Returns:
    A serialized `PrefetchRunnerOptions` message for each stage.

  Raises:
    tf.errors.FailedPreconditionError: If a checkpoint would lose what a stage has read ahead.
    tf.errors.OpError: If the session cannot run, for example because it is closed.
  """
  config = session._config or config_pb2.ConfigProto()
  runners = list(session.graph.get_collection(stage_graph.RUNNERS_COLLECTION))
  if _may_have_stages(session, config, bool(runners)):
    runners, notes = _pywrap_staging.runners_of_session(session._session, runners)
    _report(session.graph, notes)
  if api_name.IS_PLUGIN:
    runners = [_in_callers_thread(runner) for runner in runners]
  else:
    too_few_threads.warn(runners, config)
  # A server may have a timeout in its own configuration.
  if config.operation_timeout_in_ms > 0 or session.sess_str:
    return [_without_timeout(runner) for runner in runners]
  return runners


def reported(graph: ops.Graph) -> tuple[str, ...]:
  """Returns the warnings that sessions of a graph have logged when their stages started."""
  return tuple(_reported.get(graph, ()))


def _may_have_stages(
    session: session_lib.BaseSession, config: config_pb2.ConfigProto, has_manual_stages: bool) -> bool:
  """Returns whether a session has stages, or may have made some."""
  # A server may have these options in its own configuration.
  return has_manual_stages or optimizer_options.makes_stages(config) or bool(session.sess_str)


def _report(graph: ops.Graph, notes: list[tuple[str, str]]) -> None:
  """Warns of what a program has to know of its stages, once for each graph.

  Args:
    graph: The graph of a session.
    notes: What the session says of its stages (core/smart_stage/stage_notes.h): the name of an iterator of which
      a checkpoint would leave out what was read ahead, or "", and a text.

  Raises:
    tf.errors.FailedPreconditionError: If `tf.staging.save_iterators` is to save such an iterator.
  """
  saved = {saveable.op.op.name for saveable in iterator_saveable.saveables_of(graph)}
  logged = _reported.setdefault(graph, [])
  for iterator, text in notes:
    if iterator in saved:
      raise errors.FailedPreconditionError(
          None, None, f"tf.staging.save_iterators would lose the records of iterator '{iterator}' that wait. {text}")
    if text not in logged:
      logged.append(text)
      tf_logging.warning("%s", text)


def _in_callers_thread(runner: bytes) -> bytes:
  """Lets a producer compute its staged runs itself: their first op tells by its thread to which run it belongs."""
  options = messages.PrefetchRunnerOptions.FromString(runner)
  options.run_options.inter_op_thread_pool = -1
  return options.SerializeToString()


def _without_timeout(runner: bytes) -> bytes:
  """Exempts staged runs from the session's timeout, which is meant for steps."""
  options = messages.PrefetchRunnerOptions.FromString(runner)
  options.run_options.timeout_in_ms = _NO_TIMEOUT_MILLIS
  return options.SerializeToString()
