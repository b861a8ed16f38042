# SPDX-License-Identifier: Apache-2.0
"""The key that ties SmartStage options to one graph."""

from typing import Optional

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.framework import ops

from tensorflow_staging.python.smart_stage import optimizer_options


def of(graph: Optional[ops.Graph]) -> str:
  """Returns a key that identifies a graph within this process.

  Args:
    graph: The graph, or None for any graph.

  Returns:
    The key for `SmartStageOptions.graph_key`. It is empty, which allows any graph, if `graph` is
    None.
  """
  return graph._graph_key if graph is not None else ""


def check(graph: ops.Graph, config: config_pb2.ConfigProto) -> None:
  """Checks that the SmartStage options of a session do not belong to another graph.

  Args:
    graph: The graph of the session.
    config: The configuration of the session.

  Raises:
    ValueError: If the options name a graph, and it is not the graph of the session.
  """
  key = optimizer_options.fields_of(config).smart_stage_options.graph_key
  if key and key != of(graph):
    raise ValueError(
        f"smart_stage_options.graph_key is {key!r}, but the key of the session's graph is"
        f" {of(graph)!r}: tf.SmartStageOptions(graph=...) was given another graph. Give it"
        " the graph of the session, or omit the argument.")
