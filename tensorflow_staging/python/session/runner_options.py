# SPDX-License-Identifier: Apache-2.0
"""Finds the runners that a session needs, for its manual stages and for the stages that SmartStage makes."""

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import ops

from tensorflow_staging.python.pywrap import _pywrap_staging
from tensorflow_staging.python.stages import stage_graph
from tensorflow_staging.python.thread_pools import full_pools

# Ten years.
_NO_TIMEOUT_MILLIS = 10 * 365 * 24 * 3600 * 1000

# Behind these ops, a tensor may have no value, and the session then has to check whether the Put has run.
_SWITCH_OPS = ("Switch", "RefSwitch")


def of_session(session: session_lib.BaseSession) -> list[bytes]:
  """Finds the runners of a session.

  The session itself says which stages it has: it made them when it received the graph.

  Args:
    session: The session, which must already have the whole graph.

  Returns:
    A serialized `PrefetchRunnerOptions` message for each stage.

  Raises:
    tf.errors.OpError: If the session cannot run, for example because it is closed.
  """
  config = session._config or config_pb2.ConfigProto()
  runners = list(session.graph.get_collection(stage_graph.RUNNERS_COLLECTION))
  if _has_more_to_say(session, config, bool(runners)):
    runners = _pywrap_staging.runners_of_session(session._session, runners)
  full_pools.warn(runners, config)
  # A server may have a timeout in its own configuration.
  if config.operation_timeout_in_ms > 0 or session.sess_str:
    return [_without_timeout(runner) for runner in runners]
  return runners


def _has_more_to_say(
    session: session_lib.BaseSession, config: config_pb2.ConfigProto, has_manual_stages: bool) -> bool:
  """Returns whether a session may have made stages, or may check those that the graph has."""
  optimizer_options = config.graph_options.optimizer_options
  if optimizer_options.do_smart_stage or optimizer_options.do_async_embedding:
    return True
  # A server may have these options in its own configuration.
  if session.sess_str:
    return True
  return has_manual_stages and _may_put_nothing(session.graph)


def _without_timeout(runner: bytes) -> bytes:
  """Exempts staged runs from the session's timeout, which is meant for steps."""
  options = config_pb2.PrefetchRunnerOptions.FromString(runner)
  options.run_options.timeout_in_ms = _NO_TIMEOUT_MILLIS
  return options.SerializeToString()


def _may_put_nothing(graph: ops.Graph) -> bool:
  return any(operation.type in _SWITCH_OPS for operation in graph.get_operations())
