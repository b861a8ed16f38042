# SPDX-License-Identifier: Apache-2.0
"""How an iterator of a strategy is read: one iterator of tf.data for each replica, and what makes one thing of all.

```
  next()                                            get_next_as_optional()

  it_0 ─▶ IteratorGetNextAsOptional ─┬─▶ If ─▶ …    it_0 ─▶ IteratorGetNextAsOptional ─┬─▶ If ─▶ an Optional
  it_1 ─▶ IteratorGetNextAsOptional ─┤   ▲          it_1 ─▶ IteratorGetNextAsOptional ─┤   ▲
                                     └─▶ any value?                                    └─▶ any value?
```

Both conditionals make the elements of the step: values, or empty ones for replicas without an element. If none has an
element, the first one reads the end of the data, and the second one makes an Optional without a value. Of data without
an end, `next()` only reads, and `get_next_as_optional()` makes an Optional of what `next()` reads.
"""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple
from typing import Optional

from tensorflow.core.framework import function_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import op_def_registry

from tensorflow_staging.python.ahead import function_library
from tensorflow_staging.python.ahead import function_nodes
from tensorflow_staging.python.ahead import worker_reads

OPTIONAL_READ = "IteratorGetNextAsOptional"
READ = "IteratorGetNext"
CONDITIONALS = ("If", "StatelessIf")
_OPTIONAL, _NO_VALUE = "OptionalFromValue", "OptionalNone"


class ReplicaReads(NamedTuple):
  """The reads of all replicas for one step.

  Attributes:
    reads: The nodes that read, in the order of the replicas.
    between: The nodes between these and the maker, or what workers ask each other with.
    maker: What makes the elements, or an Optional of them: a conditional, or what puts the elements into an Optional.
    makes_optional: Whether it makes an Optional.
    asked: The names and types of the tensors with which workers ask each other; empty if they do not.
  """

  reads: list[node_def_pb2.NodeDef]
  between: list[node_def_pb2.NodeDef]
  maker: node_def_pb2.NodeDef
  makes_optional: bool
  asked: dict[str, int]

  @property
  def may_end(self) -> bool:
    """Whether there may be no element. Where there always is one, the end of the data ends the step."""
    return self.maker.op in CONDITIONALS

  def outputs(self) -> list[str]:
    """Returns the names of the tensors for which those of the read that stands for it all stand."""
    if self.makes_optional:
      return [f"{self.maker.name}:{'output' if self.may_end else 'optional'}:0"]
    elements = [f"{self.maker.name}:output:{i}" for i in range(len(self.maker.attr["Tout"].list.type))]
    return [*elements, *self.asked]


def find(
    maker: node_def_pb2.NodeDef, function: function_pb2.FunctionDef,
    by_name: Mapping[str, function_pb2.FunctionDef]) -> Optional[ReplicaReads]:
  """Returns what leads to a node, if that is only reads for all replicas and what computes with them.

  Args:
    maker: The node.
    function: Its function.
    by_name: All functions by their names.
  """
  if maker.op == _OPTIONAL:
    return _that_always_have_elements(maker, function)
  return _that_may_end(maker, function, by_name) if maker.op in CONDITIONALS else None


def _that_always_have_elements(
    maker: node_def_pb2.NodeDef, function: function_pb2.FunctionDef) -> Optional[ReplicaReads]:
  names = set(map(function_nodes.data_name, maker.input))
  reads = [node for node in function.node_def if node.name in names]
  are_reads = len(reads) == len(names) > 0 and all(node.op == READ for node in reads)
  if not are_reads or not _are_of_different_iterators(reads) or _are_used(names, {maker.name}, function):
    return None
  return ReplicaReads(_copies(reads), [], function_nodes.copy_of(maker), True, {})


def _that_may_end(
    conditional: node_def_pb2.NodeDef, function: function_pb2.FunctionDef,
    by_name: Mapping[str, function_pb2.FunctionDef]) -> Optional[ReplicaReads]:
  values, end = (by_name[conditional.attr[branch].func.name] for branch in ("then_branch", "else_branch"))
  makes_optional = _yields(_NO_VALUE, end) and _yields(_OPTIONAL, values) and _only_computes(end, by_name)
  if not (makes_optional or _only_reads(end)) or not _only_computes(values, by_name):
    return None
  before = function_nodes.before([conditional], function, _followed)
  reads = [node for node in before if node.op == OPTIONAL_READ]
  told = function_nodes.from_on(filter(worker_reads.is_collective, before), before)
  told_names = function_nodes.names_of(told)
  between = [node for node in before if node.op != OPTIONAL_READ and node.name not in told_names]
  inputs = set(function_nodes.inputs_of(function))
  # The conditional gets no other iterator.
  given = inputs & set(conditional.input)
  if not reads or not _are_of_different_iterators(reads) or not given <= {read.input[0] for read in reads}:
    return None
  if any(_has_effect(node) or inputs & set(node.input) for node in between):
    return None
  # Nothing else uses what goes, but for what asks the other workers. Of what these tell, only the choice is used.
  names = function_nodes.names_of(function_nodes.from_on(reads, before)) - told_names
  if _are_used(names, names | told_names | {conditional.name}, function):
    return None
  asked = worker_reads.asked(told, names)
  if asked is None or bool(asked) != bool(told):
    return None
  chosen_by = [function_nodes.data_name(name) in told_names for name in conditional.input]
  if any(_has_effect(node) for node in told if not worker_reads.is_collective(node)) or any(chosen_by[1:]):
    return None
  return ReplicaReads(_copies(reads), _copies(between), function_nodes.copy_of(conditional), makes_optional, asked)


def _followed(node: node_def_pb2.NodeDef) -> Sequence[str]:
  """Returns the inputs of a node that lead to the reads of its conditional."""
  if node.op == OPTIONAL_READ:
    return ()
  # Collective ops also wait for each other.
  return node.input[:1] if worker_reads.is_collective(node) else node.input


def _are_of_different_iterators(reads: Sequence[node_def_pb2.NodeDef]) -> bool:
  return len({read.input[0] for read in reads}) == len(reads)


def _are_used(names: set[str], inside: set[str], function: function_pb2.FunctionDef) -> bool:
  """Returns whether a node that is not among those inside uses what nodes of some names yield."""
  used = [name for node in function_nodes.live(function) if node.name not in inside for name in node.input]
  return any(function_nodes.data_name(name) in names for name in (*used, *function.ret.values()))


def _yields(op: str, branch: function_pb2.FunctionDef) -> bool:
  """Returns whether the only output of a function is what an op yields."""
  nodes = function_nodes.by_name(branch)
  made = [function_nodes.behind_identities(tensor, nodes) for tensor in branch.ret.values()]
  return [getattr(nodes.get(function_nodes.data_name(tensor)), "op", "") for tensor in made] == [op]


def _only_reads(branch: function_pb2.FunctionDef) -> bool:
  """Returns whether a function does nothing but read iterators and compute with what it reads."""
  beside = [node for node in branch.node_def if node.op != READ]
  return len(beside) < len(branch.node_def) and not any(map(_has_effect, beside))


def _only_computes(function: function_pb2.FunctionDef, by_name: Mapping[str, function_pb2.FunctionDef]) -> bool:
  """Returns whether a function, with those that it calls, has no effect and draws nothing."""
  return all(
      (node.op in CONDITIONALS or not _is_stateful(node)) and
      all(_only_computes(by_name[called], by_name) for called in function_library.called_by(node))
      for node in function.node_def)


def _has_effect(node: node_def_pb2.NodeDef) -> bool:
  return _is_stateful(node) or bool(function_library.called_by(node))


def _is_stateful(node: node_def_pb2.NodeDef) -> bool:
  op = op_def_registry.get(node.op)
  return op is None or op.is_stateful


def _copies(nodes: Sequence[node_def_pb2.NodeDef]) -> list[node_def_pb2.NodeDef]:
  return [function_nodes.copy_of(node) for node in nodes]
