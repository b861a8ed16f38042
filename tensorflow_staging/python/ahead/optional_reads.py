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

_OPTIONAL_READ = "IteratorGetNextAsOptional"
_READ = "IteratorGetNext"
_CONDITIONALS = ("If", "StatelessIf")


class OptionalReads(NamedTuple):
  """The reads of one conditional of a function.

  Attributes:
    reads: The nodes that read Optionals, in the order of the replicas.
    between: The nodes between these and the conditional.
    conditional: The conditional.
  """

  reads: list[node_def_pb2.NodeDef]
  between: list[node_def_pb2.NodeDef]
  conditional: node_def_pb2.NodeDef


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
  before = _before([conditional], function, stop_at=_OPTIONAL_READ)
  reads = [node for node in before if node.op == _OPTIONAL_READ]
  between = [node for node in before if node.op != _OPTIONAL_READ]
  iterators = [read.input[0] for read in reads]
  given = {name for name in conditional.input if name in _inputs_of(function)}
  # Each iterator is read once, and the conditional gets no other iterator.
  if not reads or len(set(iterators)) < len(reads) or not given <= set(iterators):
    return None
  if any(_has_effect(node) or _inputs_of(function) & set(node.input) for node in between):
    return None
  # Nothing else uses what goes.
  names = {read.name for read in reads} | {node.name for node in between if node.op != "Const"}
  inside = names | {conditional.name}
  used = [name for node in _live(function) if node.name not in inside for name in node.input]
  if any(_data_name(name) in names for name in (*used, *function.ret.values())):
    return None
  return OptionalReads(*([_copy(node) for node in part] for part in (reads, between)), _copy(conditional))


def _replace(found: OptionalReads, function: function_pb2.FunctionDef) -> None:
  conditional = found.conditional
  first, *others = [read.name for read in found.reads]
  gone = {conditional.name} | {node.name for node in found.between if node.op != "Const"}
  kept = [_copy(node) for node in _live(function) if node.name not in gone]
  del function.node_def[:]
  for node in kept:
    if node.name in (first, *others):
      node.op = _READ
      node.ClearField("experimental_type")
    if node.name == first:
      node.attr["output_types"].CopyFrom(conditional.attr["Tout"])
      node.attr["output_shapes"].CopyFrom(conditional.attr["output_shapes"])
      node.input.extend(f"^{name}" for name in others)
    elif node.name in others:
      # Any element stands for what nothing uses.
      node.attr["output_types"].list.type[:] = [types_pb2.DT_INT64]
      node.attr["output_shapes"].CopyFrom(attr_value_pb2.AttrValue(list={"shape": [{}]}))
    awaited = [f"^{first}" if name.startswith("^") and name[1:] in gone else name for name in node.input]
    _set_inputs(node, [_renamed(name, f"{conditional.name}:output:", f"{first}:components:") for name in awaited])
    function.node_def.append(node)
  for result, name in list(function.ret.items()):
    function.ret[result] = _renamed(name, f"{conditional.name}:output:", f"{first}:components:")
  for output in [output for output, name in function.control_ret.items() if name in gone]:
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
  for node in function.node_def:
    # What waits for the reads waits for the conditional, too.
    awaited = [f"^{conditional}"] if f"^{names[0]}" in node.input else []
    used = [_renamed(name, f"{names[0]}:components:", f"{conditional}:output:") for name in node.input]
    _set_inputs(node, [*used, *awaited])
  for result, name in list(function.ret.items()):
    function.ret[result] = _renamed(name, f"{names[0]}:components:", f"{conditional}:output:")
  added = [node for node in (*found.between, found.conditional) if node.name not in nodes]
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
  roots = {*map(_data_name, function.ret.values()), *function.control_ret.values()}
  found = [node for node in function.node_def if node.name in roots]
  before = {node.name for node in _before(found, function)}
  return [node for node in function.node_def if node.name in before or node.name in roots]


def _before(
    nodes: Sequence[node_def_pb2.NodeDef], function: function_pb2.FunctionDef, stop_at: str = ""
) -> list[node_def_pb2.NodeDef]:
  """Returns the nodes on which some nodes of a function depend; not those behind nodes of the op `stop_at`."""
  by_name = {node.name: node for node in function.node_def}
  found, to_visit = set(), list(nodes)
  while to_visit:
    for name in to_visit.pop().input:
      name = _data_name(name) or name[1:]
      # An input of the function is no node.
      if name in by_name and name not in found:
        found.add(name)
        if by_name[name].op != stop_at:
          to_visit.append(by_name[name])
  return [node for node in function.node_def if node.name in found]


def _data_name(tensor: str) -> str:
  """Returns the node or the input of a function that yields a tensor; an empty string for a control edge."""
  return "" if tensor.startswith("^") else tensor.partition(":")[0]


def _inputs_of(function: function_pb2.FunctionDef) -> set[str]:
  return {arg.name for arg in function.signature.input_arg}


def _renamed(tensor: str, old: str, new: str) -> str:
  """Returns the name of a tensor with another beginning, if it has the old one."""
  return new + tensor[len(old):] if tensor.startswith(old) else tensor


def _set_inputs(node: node_def_pb2.NodeDef, inputs: Sequence[str]) -> None:
  """Sets the inputs of a node. What waits for another node several times waits for it once."""
  data = [name for name in inputs if not name.startswith("^")]
  node.input[:] = [*data, *dict.fromkeys(name for name in inputs if name.startswith("^"))]


def _copy(node: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
  copy = node_def_pb2.NodeDef()
  copy.CopyFrom(node)
  return copy
