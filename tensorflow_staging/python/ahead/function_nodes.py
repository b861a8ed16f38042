# SPDX-License-Identifier: Apache-2.0
"""Which nodes of a function depend on which."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from tensorflow.core.framework import function_pb2
from tensorflow.core.framework import node_def_pb2


def before(
    nodes: Iterable[node_def_pb2.NodeDef], function: function_pb2.FunctionDef,
    followed: Callable[[node_def_pb2.NodeDef], Iterable[str]] = lambda node: node.input) -> list[node_def_pb2.NodeDef]:
  """Returns the nodes on which some nodes of a function depend, by those inputs of each node that are followed."""
  named = by_name(function)
  found, to_visit = set(), list(nodes)
  while to_visit:
    for name in map(name_of, followed(to_visit.pop())):
      # An input of the function is no node.
      if name in named and name not in found:
        found.add(name)
        to_visit.append(named[name])
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


def live(function: function_pb2.FunctionDef) -> list[node_def_pb2.NodeDef]:
  """Returns the nodes that lead to an output of a function. The others do not run, and may use anything."""
  roots = {*map(data_name, function.ret.values()), *function.control_ret.values()}
  found = [node for node in function.node_def if node.name in roots]
  names = names_of(before(found, function)) | roots
  return [node for node in function.node_def if node.name in names]


def by_name(function: function_pb2.FunctionDef) -> dict[str, node_def_pb2.NodeDef]:
  """Returns the nodes of a function by their names."""
  return {node.name: node for node in function.node_def}


def behind_identities(tensor: str, nodes: Mapping[str, node_def_pb2.NodeDef]) -> str:
  """Returns the tensor of which a tensor is a copy, or the tensor itself.

  Args:
    tensor: The name of the tensor.
    nodes: The nodes of its function by their names.
  """
  while (node := nodes.get(data_name(tensor))) is not None and node.op == "Identity":
    tensor = node.input[0]
  return tensor


def inputs_of(function: function_pb2.FunctionDef) -> list[str]:
  """Returns the names of the inputs of a function."""
  return [arg.name for arg in function.signature.input_arg]


def set_inputs(node: node_def_pb2.NodeDef, inputs: Iterable[str]) -> None:
  """Sets the inputs of a node. What waits for another node several times waits for it once."""
  inputs = list(inputs)
  data = [name for name in inputs if not name.startswith("^")]
  node.input[:] = [*data, *dict.fromkeys(name for name in inputs if name.startswith("^"))]


def copy_of(node: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
  """Returns a copy of a node, which does not change with its function."""
  copy = node_def_pb2.NodeDef()
  copy.CopyFrom(node)
  return copy
