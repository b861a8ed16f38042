# SPDX-License-Identifier: Apache-2.0
"""What comes back in the parts of a step where one read stands for those of all replicas (`optional_reads.py`).

```
  next()                                        get_next_as_optional()

  it_0 ─▶ IteratorGetNextAsOptional ─┬─▶ If     it_0 ─▶ IteratorGetNextAsOptional ─┬─▶ If ─▶ OptionalGetValue
  it_1 ─▶ IteratorGetNextAsOptional ─┤   ▲      it_1 ─▶ IteratorGetNextAsOptional ─┤   ▲       ▲ (control edge)
                                     └─▶ any?                                      └─▶ any? ─▶ StepNeedsData
```

The `If` of `next()` reads the end of the data; that of `get_next_as_optional()` does not, so another node ends it. Data
without an end has no `If` there.
"""

from tensorflow.core.framework import function_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import op_def_pb2
from tensorflow.core.framework import types_pb2

from tensorflow_staging.python.ahead import function_nodes
from tensorflow_staging.python.ahead import replica_reads
from tensorflow_staging.python.ahead import worker_reads

_GET_VALUE = "OptionalGetValue"
_TAKE_IF_ANY = "StepBufferTakeIfAny"


def restore_elements(found: replica_reads.ReplicaReads, function: function_pb2.FunctionDef) -> None:
  """Brings back the reads of a `next()` in a part that has the read which stands for them."""
  nodes = function_nodes.by_name(function)
  maker = found.maker.name
  names = [read.name for read in found.reads]
  # In the rest, what takes the record has the name of the read.
  if names[0] not in nodes or nodes[names[0]].op != replica_reads.READ:
    return
  # The inputs of the part have names of their own.
  iterators = {read.input[0]: nodes[read.name].input[0] for read in found.reads}
  for read in found.reads:
    node = nodes[read.name]
    awaited = [name for name in node.input[1:] if name[1:] not in names]
    node.CopyFrom(read)
    function_nodes.set_inputs(node, [iterators[read.input[0]], *awaited])
  renamed = {f"{names[0]}:components:{i}": name for i, name in enumerate(found.outputs())}
  for node in function.node_def:
    # What waits for the reads waits for the conditional, too.
    awaited = [f"^{maker}"] if f"^{names[0]}" in node.input else []
    function_nodes.set_inputs(node, [*(renamed.get(name, name) for name in node.input), *awaited])
  for result, name in list(function.ret.items()):
    function.ret[result] = renamed.get(name, name)
  elements = worker_reads.elements_of(found.maker) if found.asked else found.maker
  added = [node for node in (*found.between, elements) if node.name not in nodes]
  known = {node.name for node in added} | set(nodes)
  for node in added:
    copy = function.node_def.add()
    copy.CopyFrom(node)
    function_nodes.set_inputs(copy, [
        iterators.get(name, name) for name in node.input if not name.startswith("^") or name[1:] in known])


def restore_optional(found: replica_reads.ReplicaReads, function: function_pb2.FunctionDef) -> bool:
  """Brings back the reads of a `get_next_as_optional()` in a part of the branch that gets its value.

  Args:
    found: The reads.
    function: The part. Before its last input, it gets an iterator for each read but the first one.

  Returns:
    False if the part does not read, since it is the rest.
  """
  value = next((node for node in function.node_def if node.op == replica_reads.READ), None)
  if value is None:
    return False
  iterator, *awaited = value.input
  iterators = [iterator, *_add_iterators(function, len(found.reads) - 1)]
  given = {read.input[0]: iterator for read, iterator in zip(found.reads, iterators)}
  nodes = [*found.reads, *found.between, found.maker]
  names = function_nodes.names_of(nodes)
  for node in nodes:
    copy = function.node_def.add()
    copy.CopyFrom(node)
    copy.name = _scoped(node.name, value)
    copy.attr.pop("_class", None)
    inputs = [given.get(name) or _scoped(name, value) for name in node.input
              if name in given or function_nodes.name_of(name) in names]
    function_nodes.set_inputs(copy, [*inputs, *(awaited if node in found.reads else ())])
  optional, = found.outputs()
  value.op = _GET_VALUE
  value.input[0] = _scoped(optional, value)
  if found.may_end:
    need = worker_reads.need(_scoped("need", value), _scoped(found.maker.input[0], value))
    function.node_def.add().CopyFrom(need)
    value.input.append(f"^{need.name}")
  return True


def end_with_data(found: replica_reads.ReplicaReads, function: function_pb2.FunctionDef) -> None:
  """Lets the rest of a step end with the data if the step always expects an element."""
  take = function_nodes.by_name(function).get(found.reads[0].name)
  if take is None or take.op != _TAKE_IF_ANY:
    return
  need = worker_reads.need(found.maker.name, f"{take.name}:has_record:0")
  for node in function.node_def:
    if f"{take.name}:record:0" in node.input:
      node.input.append(f"^{need.name}")
  function.node_def.add().CopyFrom(need)
  function.control_ret[need.name] = need.name
  function.signature.control_output.append(need.name)


def _scoped(tensor: str, value: node_def_pb2.NodeDef) -> str:
  """Returns the name in the branch of what another function has; nodes of the branch have names of their own."""
  mark = "^" if tensor.startswith("^") else ""
  return f"{mark}{value.name}/{tensor.removeprefix('^')}"


def _add_iterators(function: function_pb2.FunctionDef, number: int) -> list[str]:
  """Adds inputs to the part ahead, before the last one, which is the buffer's handle; returns their names."""
  inputs = function.signature.input_arg
  last = len(inputs) - 1
  names = [f"staging_iterator_{i}" for i in range(number)]
  for i, name in enumerate(names):
    inputs.insert(last + i, op_def_pb2.OpDef.ArgDef(name=name, type=types_pb2.DT_RESOURCE))
  return names
