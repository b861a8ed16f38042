# SPDX-License-Identifier: Apache-2.0
"""Reads of a strategy's iterators where the last step may have elements for some replicas only.

There `tf.distribute` asks each replica's iterator for an Optional, and a conditional makes of them the elements of the
step: values, or empty ones for replicas without an element. If none has an element, it reads the end of the data.

```
  in the trace                                      while it is divided

  it_0 ─▶ IteratorGetNextAsOptional ─┬─▶ If ─▶ …    it_0 ─▶ IteratorGetNext ─▶ …
  it_1 ─▶ IteratorGetNextAsOptional ─┤   ▲                     ▲ (control edge)
                                     └─▶ any value?  it_1 ─▶ IteratorGetNext
```

What divides steps knows `IteratorGetNext`, so that stands for all of it, and what was there comes back in the part
ahead. So records have the elements of the last step, too, with the empty ones.

The workers of a strategy also ask each other whether any of them has an element, by collective ops between the reads
and the conditional. These stay in the step (`worker_reads.py`), and the record has what they ask with. The part ahead
has the elements or empty ones as long as steps come, since it cannot know when the other workers have none left.
"""

from collections.abc import Sequence
from typing import NamedTuple
from typing import Optional

from tensorflow.core.framework import attr_value_pb2
from tensorflow.core.framework import function_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import op_def_registry

from tensorflow_staging.python.ahead import function_library
from tensorflow_staging.python.ahead import function_nodes
from tensorflow_staging.python.ahead import worker_reads

_OPTIONAL_READ = "IteratorGetNextAsOptional"
_READ = "IteratorGetNext"
_CONDITIONALS = ("If", "StatelessIf")


class OptionalReads(NamedTuple):
  """The reads of one conditional of a function.

  Attributes:
    reads: The nodes that read Optionals, in the order of the replicas.
    between: The nodes between these and the conditional, or what workers ask each other with.
    conditional: The conditional.
    asked: The names and types of the tensors with which workers ask each other; empty if they do not.
  """

  reads: list[node_def_pb2.NodeDef]
  between: list[node_def_pb2.NodeDef]
  conditional: node_def_pb2.NodeDef
  asked: dict[str, int]

  def outputs(self) -> list[str]:
    """Returns the names of the tensors for which those of the read that stands for it all stand."""
    elements = [f"{self.conditional.name}:output:{i}" for i in range(len(self.conditional.attr["Tout"].list.type))]
    return [*elements, *self.asked]


def replace(library: function_pb2.FunctionDefLibrary) -> dict[str, list[OptionalReads]]:
  """Lets reads of elements stand for reads of Optionals, in all functions of a library.

  Args:
    library: The library, which changes.

  Returns:
    What `restore` needs.
  """
  by_name = {function.signature.name: function for function in library.function}
  replaced = {}
  for function in library.function:
    for node in list(function.node_def):
      found = _reads_of(node, function, by_name) if node.op in _CONDITIONALS else None
      if found is not None:
        replaced.setdefault(function.signature.name, []).append(found)
        _replace(found, function)
  return replaced


def restore(function: function_pb2.FunctionDef, replaced: Sequence[OptionalReads]) -> None:
  """Brings back in a part of a function what `replace` has replaced in the function.

  Args:
    function: The part, which changes.
    replaced: What `replace` has returned for the function.
  """
  for found in replaced:
    _restore(found, function)


def _reads_of(
    conditional: node_def_pb2.NodeDef, function: function_pb2.FunctionDef,
    by_name: dict[str, function_pb2.FunctionDef]) -> Optional[OptionalReads]:
  """Returns what leads to a conditional, if that is only reads of Optionals and what computes with them."""
  values, end = (by_name[conditional.attr[branch].func.name] for branch in ("then_branch", "else_branch"))
  if not _only_reads(end) or not _only_computes(values, by_name):
    return None
  before = function_nodes.before([conditional], function, _followed)
  reads = [node for node in before if node.op == _OPTIONAL_READ]
  told = function_nodes.from_on(filter(worker_reads.is_collective, before), before)
  told_names = function_nodes.names_of(told)
  between = [node for node in before if node.op != _OPTIONAL_READ and node.name not in told_names]
  iterators = [read.input[0] for read in reads]
  given = {name for name in conditional.input if name in _inputs_of(function)}
  # Each iterator is read once, and the conditional gets no other iterator.
  if not reads or len(set(iterators)) < len(reads) or not given <= set(iterators):
    return None
  if any(_has_effect(node) or _inputs_of(function) & set(node.input) for node in between):
    return None
  # Nothing else uses what goes, but for what asks the other workers. Of what these tell, only the choice is used.
  names = function_nodes.names_of(function_nodes.from_on(reads, before)) - told_names
  inside = names | told_names | {conditional.name}
  used = [name for node in _live(function) if node.name not in inside for name in node.input]
  if any(function_nodes.data_name(name) in names for name in (*used, *function.ret.values())):
    return None
  asked = worker_reads.asked(told, names)
  if asked is None or bool(asked) != bool(told):
    return None
  chosen_by = [function_nodes.data_name(name) in told_names for name in conditional.input]
  if any(_has_effect(node) for node in told if not worker_reads.is_collective(node)) or any(chosen_by[1:]):
    return None
  return OptionalReads(*([_copy(node) for node in part] for part in (reads, between)), _copy(conditional), asked)


def _followed(node: node_def_pb2.NodeDef) -> Sequence[str]:
  """Returns the inputs of a node that lead to the reads of its conditional."""
  if node.op == _OPTIONAL_READ:
    return ()
  # Collective ops also wait for each other.
  return node.input[:1] if worker_reads.is_collective(node) else node.input


def _replace(found: OptionalReads, function: function_pb2.FunctionDef) -> None:
  conditional = found.conditional
  first, *others = [read.name for read in found.reads]
  names = function_nodes.names_of(found.reads)
  gone = function_nodes.names_of(function_nodes.from_on(found.reads, found.between)) | {conditional.name}
  kept = [_copy(node) for node in _live(function) if node.name not in gone]
  if found.asked:
    kept.append(worker_reads.need_of_data(conditional))
  renamed = {name: f"{first}:components:{i}" for i, name in enumerate(found.outputs())}
  del function.node_def[:]
  for node in kept:
    if node.name in names:
      node.op = _READ
      node.ClearField("experimental_type")
    if node.name == first:
      node.attr["output_types"].list.type[:] = [*conditional.attr["Tout"].list.type, *found.asked.values()]
      shapes = node.attr["output_shapes"].list.shape
      del shapes[:]
      shapes.extend(conditional.attr["output_shapes"].list.shape)
      for _ in found.asked:
        shapes.add().unknown_rank = True
      node.input.extend(f"^{name}" for name in others)
    elif node.name in others:
      # Any element stands for what nothing uses.
      node.attr["output_types"].list.type[:] = [types_pb2.DT_INT64]
      node.attr["output_shapes"].CopyFrom(attr_value_pb2.AttrValue(list={"shape": [{}]}))
    awaited = [f"^{first}" if name.startswith("^") and name[1:] in gone else name for name in node.input]
    _set_inputs(node, [renamed.get(name, name) for name in awaited])
    function.node_def.append(node)
  for result, name in list(function.ret.items()):
    function.ret[result] = renamed.get(name, name)
  left = function_nodes.names_of(kept)
  for output in [output for output, name in function.control_ret.items() if name not in left]:
    del function.control_ret[output]
    function.signature.control_output.remove(output)


def _restore(found: OptionalReads, function: function_pb2.FunctionDef) -> None:
  nodes = {node.name: node for node in function.node_def}
  conditional = found.conditional.name
  names = [read.name for read in found.reads]
  # In the rest, what takes the record has the name of the read.
  if names[0] not in nodes or nodes[names[0]].op != _READ:
    return
  # The inputs of the part have names of their own.
  iterators = {read.input[0]: nodes[read.name].input[0] for read in found.reads}
  for read in found.reads:
    node = nodes[read.name]
    awaited = [name for name in node.input[1:] if name[1:] not in names]
    node.CopyFrom(read)
    _set_inputs(node, [iterators[read.input[0]], *awaited])
  renamed = {f"{names[0]}:components:{i}": name for i, name in enumerate(found.outputs())}
  for node in function.node_def:
    # What waits for the reads waits for the conditional, too.
    awaited = [f"^{conditional}"] if f"^{names[0]}" in node.input else []
    _set_inputs(node, [*(renamed.get(name, name) for name in node.input), *awaited])
  for result, name in list(function.ret.items()):
    function.ret[result] = renamed.get(name, name)
  elements = worker_reads.elements_of(found.conditional) if found.asked else found.conditional
  added = [node for node in (*found.between, elements) if node.name not in nodes]
  known = {node.name for node in added} | set(nodes)
  for node in added:
    copy = function.node_def.add()
    copy.CopyFrom(node)
    _set_inputs(copy, [
        iterators.get(name, name) for name in node.input if not name.startswith("^") or name[1:] in known])


def _only_reads(branch: function_pb2.FunctionDef) -> bool:
  """Returns whether a function does nothing but read iterators and compute with what it reads."""
  beside = [node for node in branch.node_def if node.op != _READ]
  return len(beside) < len(branch.node_def) and not any(map(_has_effect, beside))


def _only_computes(function: function_pb2.FunctionDef, by_name: dict[str, function_pb2.FunctionDef]) -> bool:
  """Returns whether a function, with those that it calls, has no effect and draws nothing."""
  return all(
      (node.op in _CONDITIONALS or not _is_stateful(node)) and
      all(_only_computes(by_name[called], by_name) for called in function_library.called_by(node))
      for node in function.node_def)


def _has_effect(node: node_def_pb2.NodeDef) -> bool:
  return _is_stateful(node) or bool(function_library.called_by(node))


def _is_stateful(node: node_def_pb2.NodeDef) -> bool:
  op = op_def_registry.get(node.op)
  return op is None or op.is_stateful


def _live(function: function_pb2.FunctionDef) -> list[node_def_pb2.NodeDef]:
  """Returns the nodes that lead to an output. The others do not run, and may use anything."""
  roots = {*map(function_nodes.data_name, function.ret.values()), *function.control_ret.values()}
  found = [node for node in function.node_def if node.name in roots]
  before = {node.name for node in function_nodes.before(found, function)}
  return [node for node in function.node_def if node.name in before or node.name in roots]


def _inputs_of(function: function_pb2.FunctionDef) -> set[str]:
  return {arg.name for arg in function.signature.input_arg}


def _set_inputs(node: node_def_pb2.NodeDef, inputs: Sequence[str]) -> None:
  """Sets the inputs of a node. What waits for another node several times waits for it once."""
  data = [name for name in inputs if not name.startswith("^")]
  node.input[:] = [*data, *dict.fromkeys(name for name in inputs if name.startswith("^"))]


def _copy(node: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
  copy = node_def_pb2.NodeDef()
  copy.CopyFrom(node)
  return copy
