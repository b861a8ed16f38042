# SPDX-License-Identifier: Apache-2.0
"""Finds the runners that a session needs, for its manual stages and for the stages that SmartStage makes."""

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import c_api_util
from tensorflow.python.framework import ops

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.pywrap import _pywrap_staging
from tensorflow_staging.python.stages import stage_graph

# Ten years.
_NO_TIMEOUT_MILLIS = 10 * 365 * 24 * 3600 * 1000


def of_session(session: session_lib.BaseSession, old_nodes: int = 0) -> list[bytes]:
  """Finds the runners of a session.

  Args:
    session: The session.
    old_nodes: The number of nodes that the graph had when its stages began to run; 0 if they have not
      begun. Nodes added later change none of the stages that SmartStage makes.

  Returns:
    A serialized `PrefetchRunnerOptions` message for each stage.

  Raises:
    tf.errors.InvalidArgumentError: If the session's configuration of SmartStage is wrong.
  """
  config = session._config or config_pb2.ConfigProto()
  runners = _of_graph(session.graph, config, old_nodes)
  if config.operation_timeout_in_ms > 0:
    return [_without_timeout(runner) for runner in runners]
  return runners


def _of_graph(
    graph: ops.Graph, config: config_pb2.ConfigProto, old_nodes: int) -> list[bytes]:
  manual_stages = list(graph.get_collection(stage_graph.RUNNERS_COLLECTION))
  smart_stage = config.graph_options.optimizer_options.do_smart_stage
  if not smart_stage and not (manual_stages and _may_restart(graph)):
    return manual_stages
  return _pywrap_staging.runner_options(
      serialized_graph(graph), config.SerializeToString(), manual_stages, old_nodes)


def serialized_graph(graph: ops.Graph) -> bytes:
  """Serializes a graph's definition, without building it as a Python message first.

  Args:
    graph: The graph.

  Returns:
    A serialized `GraphDef`.
  """
  with c_api_util.tf_buffer() as buffer:
    pywrap_tf_session.TF_GraphToGraphDef(graph._c_graph, buffer)
    return pywrap_tf_session.TF_GetBuffer(buffer)


def _without_timeout(runner: bytes) -> bytes:
  """Exempts staged runs from the session's timeout, which is meant for steps."""
  options = config_pb2.PrefetchRunnerOptions.FromString(runner)
  options.run_options.timeout_in_ms = _NO_TIMEOUT_MILLIS
  return options.SerializeToString()


def _may_restart(graph: ops.Graph) -> bool:
  return any(operation.type in vocabulary.ITERATOR_INITIALIZER_OPS for operation in graph.get_operations())
