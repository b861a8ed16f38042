# SPDX-License-Identifier: Apache-2.0
"""Which nodes of a function depend on which."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence

from tensorflow.core.framework import function_pb2
from tensorflow.core.framework import node_def_pb2


def before(
    nodes: Iterable[node_def_pb2.NodeDef], function: function_pb2.FunctionDef,
    followed: Callable[[node_def_pb2.NodeDef], Iterable[str]] = lambda node: node.input) -> list[node_def_pb2.NodeDef]:
  """Returns the nodes on which some nodes of a function depend, by those inputs of each node that are followed."""
  by_name = {node.name: node for node in function.node_def}
  found, to_visit = set(), list(nodes)
  while to_visit:
    for name in map(name_of, followed(to_visit.pop())):
      # An input of the function is no node.
      if name in by_name and name not in found:
        found.add(name)
        to_visit.append(by_name[name])
  return [node for node in function.node_def if node.name in found]


def from_on(
    roots: Iterable[node_def_pb2.NodeDef], nodes: Sequence[node_def_pb2.NodeDef]) -> list[node_def_pb2.NodeDef]:
  """Returns those of some nodes that are roots, or compute with what roots yield."""
  found, known = {root.name for root in roots}, -1
  while len(found) > known:
    known = len(found)
    found |= {node.name for node in nodes if any(data_name(name) in found for name in node.input)}
  return [node for node in nodes if node.name in found]


def name_of(tensor: str) -> str:
  """Returns the node or the input of a function that yields a tensor, or at which a control edge begins."""
  return tensor.removeprefix("^").partition(":")[0]


def data_name(tensor: str) -> str:
  """Returns the node or the input of a function that yields a tensor; an empty string for a control edge."""
  return "" if tensor.startswith("^") else name_of(tensor)


def names_of(nodes: Iterable[node_def_pb2.NodeDef]) -> set[str]:
  """Returns the names of some nodes."""
  return {node.name for node in nodes}
