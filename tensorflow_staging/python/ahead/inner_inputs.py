# SPDX-License-Identifier: Apache-2.0
"""Which inputs of a step are also inputs of the functions that it calls, such as the body of a loop."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Optional

from tensorflow.core.framework import function_pb2
from tensorflow.core.framework import node_def_pb2

from tensorflow_staging.python.ahead import function_library
from tensorflow_staging.python.ahead import function_nodes

# What passes its inputs on to the functions that it calls, but for so many of the first ones.
_CALLS = {
    "If": 1, "StatelessIf": 1, "While": 0, "StatelessWhile": 0, "PartitionedCall": 0, "StatefulPartitionedCall": 0}


class InnerInputs:
  """Follows the inputs of a step into the functions that it calls.

  Attributes:
    used: The indices of the inputs that some node uses. What passes one on to a function does not use it.
  """

  def __init__(self, name: str, by_name: Mapping[str, function_pb2.FunctionDef]):
    """Follows them.

    Args:
      name: The name of the step.
      by_name: It and all functions that it calls, by their names.
    """
    self.used: set[int] = set()
    self._by_name = by_name
    # By functions: the indices of the step's inputs that they have, by the names of their own.
    self._known: dict[str, dict[str, int]] = {}
    self._follow(name, range(len(by_name[name].signature.input_arg)))

  def index_of(self, function: str, name: str) -> Optional[int]:
    """Returns which input of the step an input of a function is in each call; None if none, or not always the same."""
    return self._known.get(function, {}).get(name)

  def _follow(self, name: str, indices: Sequence[Optional[int]]) -> None:
    function = self._by_name[name]
    given = {arg: i for arg, i in zip(function_nodes.inputs_of(function), indices) if i is not None}
    if name in self._known:
      if self._known[name] != given:
        self.used |= {*self._known[name].values(), *given.values()}
        self._known[name] = {}
      return
    self._known[name] = given
    nodes = function_nodes.by_name(function)
    for node in function_nodes.live(function):
      inputs = [given.get(function_nodes.behind_identities(tensor, nodes)) for tensor in node.input]
      first = _CALLS.get(node.op)
      if first is not None:
        kept = self._kept(node, inputs)
        for called in function_library.called_by(node):
          self._follow(called, kept[first:])
        inputs = [i for i, still in zip(inputs, kept) if still is None]
      if node.op != "Identity":
        self.used.update(i for i in inputs if i is not None)

  def _kept(self, node: node_def_pb2.NodeDef, inputs: Sequence[Optional[int]]) -> list[Optional[int]]:
    """Returns the inputs of a call that its functions always have: without those that a loop changes."""
    if node.op not in ("While", "StatelessWhile"):
      return list(inputs)
    body = self._by_name[node.attr["body"].func.name]
    nodes = function_nodes.by_name(body)
    outputs = [function_nodes.behind_identities(body.ret[arg.name], nodes) for arg in body.signature.output_arg]
    return [
        i if output == own else None for i, output, own in zip(inputs, outputs, function_nodes.inputs_of(body))]
