# SPDX-License-Identifier: Apache-2.0
"""Which operations of its graph a callable of a session runs."""

from typing import Any

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib


def of_fetches(session: session_lib.BaseSession, fetches: Any) -> list[ops.Operation]:
  """Returns the targets of a callable that `make_callable` makes, and the operations of its fetches."""
  handler = session_lib._FetchHandler(session.graph, fetches, {})
  return [*handler.targets(), *(tensor.op for tensor in handler.fetches())]


def of_options(
    session: session_lib.BaseSession,
    options: config_pb2.CallableOptions) -> tuple[list[ops.Operation], dict[tensor_lib.Tensor, None]]:
  """Returns the targets of a callable with the operations of its fetches, and what it is fed, as keys."""
  graph = session.graph
  elements = [graph.as_graph_element(name) for name in (*options.target, *options.fetch)]
  operations = [element if isinstance(element, ops.Operation) else element.op for element in elements]
  return operations, {graph.as_graph_element(name): None for name in options.feed}
