# SPDX-License-Identifier: Apache-2.0
"""For which graph the options of SmartStage were made."""

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.framework import ops


def of(graph: ops.Graph | None) -> str:
  """What tells a graph from all others of this process.

  Args:
    graph: The graph, or None.

  Returns:
    The key for `SmartStageOptions.graph_key`; empty, which stands for any graph, without a graph.
  """
  return graph._graph_key if graph is not None else ""


def check(graph: ops.Graph, config: config_pb2.ConfigProto) -> None:
  """Checks that the options of SmartStage are not those of another graph than the session's.

  Args:
    graph: The graph of the session.
    config: The configuration of the session.

  Raises:
    ValueError: If they are.
  """
  key = config.graph_options.optimizer_options.smart_stage_options.graph_key
  if key and key != of(graph):
    raise ValueError(
        f"smart_stage_options.graph_key is {key!r}, but the key of the session's graph is"
        f" {of(graph)!r}: tf.SmartStageOptions(graph=...) was given another graph. Give it"
        " the graph of the session, or none.")
