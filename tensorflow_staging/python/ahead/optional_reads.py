# SPDX-License-Identifier: Apache-2.0
"""One read in the place of those of all replicas (`replica_reads.py`), while a step is divided.

What divides steps knows `IteratorGetNext`, and conditionals that use an Optional of `IteratorGetNextAsOptional`. One of
these stands for all reads of a step, and what was there comes back in the part ahead.

```
  next()                           get_next_as_optional()

  it_0 ─▶ IteratorGetNext ─▶ …     it_0 ─▶ IteratorGetNextAsOptional ─▶ If, and its branch: OptionalGetValue ─▶ …
             ▲ (control edge)      it_1 ─▶ nothing
  it_1 ─▶ IteratorGetNext
```

So records have the elements of the last step, too, with the empty ones. An Optional is divided only where one iterator
is read, so the others have to wait, too: until the part ahead, in which the branch reads, gets them as further inputs.

The workers of a strategy also ask each other whether any of them has an element, by collective ops between the reads
and the conditional. These stay in the step (`worker_reads.py`), and the record has what they ask with. The part ahead
has the elements or empty ones as long as steps come, since it cannot know when the other workers have none left.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Sequence

from tensorflow.core.framework import attr_value_pb2
from tensorflow.core.framework import function_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import types_pb2

from tensorflow_staging.python.ahead import function_nodes
from tensorflow_staging.python.ahead import inner_inputs
from tensorflow_staging.python.ahead import replica_reads
from tensorflow_staging.python.ahead import restored_reads
from tensorflow_staging.python.ahead import worker_reads

_ASKS_OR_COPIES = ("OptionalHasValue", "Identity")
_ASKS_FOR_AN_OPTIONAL = "it asks the other workers whether there is an element, and goes on if there is none"
_OTHER_READS = "it reads the replicas' iterators by get_next_as_optional(), and by next() beside that"


@dataclasses.dataclass
class Replaced:
  """What `replace` has replaced.

  Attributes:
    reads: The reads by the names of the functions that have them.
    branches: The reads of Optionals by the names of the functions that get their values, with the indices of those
      inputs of the step that are their iterators, but for the first one.
    why_not: Why the step must not be divided; empty if it may be.
  """

  reads: dict[str, list[replica_reads.ReplicaReads]]
  branches: dict[str, tuple[replica_reads.ReplicaReads, list[int]]]
  why_not: str = ""

  @property
  def hidden(self) -> set[int]:
    """The indices of the inputs that are iterators which nothing reads meanwhile."""
    return {index for _, indices in self.branches.values() for index in indices}


def replace(library: function_pb2.FunctionDefLibrary, name: str) -> Replaced:
  """Lets a read stand for those of all replicas, in all functions of a library.

  Args:
    library: The library, which changes.
    name: The name of the step, its first function.
  """
  by_name = {function.signature.name: function for function in library.function}
  replaced = Replaced({}, {})
  for function in library.function:
    for node in list(function.node_def):
      found = replica_reads.find(node, function, by_name)
      if found is not None and found.makes_optional and found.asked:
        replaced.why_not = _ASKS_FOR_AN_OPTIONAL
      elif found is not None and (not found.makes_optional or _note_branch(found, function, name, by_name, replaced)):
        replaced.reads.setdefault(function.signature.name, []).append(found)
        _replace(found, function)
  if replaced.hidden and replaced.hidden & inner_inputs.InnerInputs(name, by_name).used:
    replaced.why_not = _OTHER_READS
  return replaced


def restore(function: function_pb2.FunctionDef, origin: str, replaced: Replaced) -> list[int]:
  """Brings back in a part of a function what `replace` has replaced in the function.

  Args:
    function: The part, which changes.
    origin: The name of the function of which it is a part.
    replaced: What `replace` has returned.

  Returns:
    The indices of those inputs of the step that the part has now, too, before its last one.
  """
  for found in replaced.reads.get(origin, ()):
    if not found.makes_optional:
      restored_reads.restore_elements(found, function)
    elif not found.may_end:
      restored_reads.end_with_data(found, function)
  found, indices = replaced.branches.get(origin, (None, []))
  return indices if found is not None and restored_reads.restore_optional(found, function) else []


def _note_branch(
    found: replica_reads.ReplicaReads, function: function_pb2.FunctionDef, name: str,
    by_name: dict[str, function_pb2.FunctionDef], replaced: Replaced) -> bool:
  """Notes the branch that gets the value of an Optional; returns False if something else may get it."""
  nodes = function_nodes.by_name(function)

  def uses(tensors: Iterable[str]) -> bool:
    return any(function_nodes.behind_identities(tensor, nodes) in found.outputs() for tensor in tensors)

  users = [node for node in function_nodes.live(function) if node.op not in _ASKS_OR_COPIES and uses(node.input)]
  branches = [user.attr["then_branch"].func.name for user in users if user.op in replica_reads.CONDITIONALS]
  others = [read.input[0] for read in found.reads[1:]]
  inner = inner_inputs.InnerInputs(name, by_name) if others else None
  indices = [inner.index_of(function.signature.name, iterator) for iterator in others]
  is_divisible = len(users) == len(branches) == 1 and branches[0] not in replaced.branches
  if not is_divisible or uses(function.ret.values()) or None in indices:
    return False
  replaced.branches[branches[0]] = found, indices
  return True


def _replace(found: replica_reads.ReplicaReads, function: function_pb2.FunctionDef) -> None:
  first, *others = [read.name for read in found.reads]
  gone = function_nodes.names_of(function_nodes.from_on(found.reads, found.between)) | {found.maker.name}
  if found.makes_optional:
    output, = found.outputs()
    nodes = function_nodes.by_name(function)
    copies = [node.name for node in function.node_def if node.op == "Identity"
              and function_nodes.behind_identities(node.input[0], nodes) == output]
    gone |= {*others, *copies}
    renamed = {name: f"{first}:optional:0" for name in (output, *(f"{copy}:output:0" for copy in copies))}
  else:
    renamed = {name: f"{first}:components:{i}" for i, name in enumerate(found.outputs())}
  kept = [function_nodes.copy_of(node) for node in function_nodes.live(function) if node.name not in gone]
  if found.asked:
    kept.append(worker_reads.need_of_data(found.maker))
  del function.node_def[:]
  for node in kept:
    if node.name == first:
      _stand_in(node, found)
    elif node.name in others:
      # Any element stands for what nothing uses.
      _read_elements(node, [types_pb2.DT_INT64], attr_value_pb2.AttrValue(list={"shape": [{}]}))
    awaited = [f"^{first}" if name.startswith("^") and name[1:] in gone else name for name in node.input]
    function_nodes.set_inputs(node, [renamed.get(name, name) for name in awaited])
    function.node_def.append(node)
  for result, name in list(function.ret.items()):
    function.ret[result] = renamed.get(name, name)
  left = function_nodes.names_of(kept)
  for output in [output for output, name in function.control_ret.items() if name not in left]:
    del function.control_ret[output]
    function.signature.control_output.remove(output)


def _stand_in(node: node_def_pb2.NodeDef, found: replica_reads.ReplicaReads) -> None:
  """Lets the first read stand for all."""
  if found.makes_optional:
    # Whatever its elements are: who gets the value says what it is.
    node.op = replica_reads.OPTIONAL_READ
    return
  shapes = function_nodes.copy_of(found.maker).attr["output_shapes"]
  for _ in found.asked:
    shapes.list.shape.add().unknown_rank = True
  _read_elements(node, [*found.maker.attr["Tout"].list.type, *found.asked.values()], shapes)
  node.input.extend(f"^{read.name}" for read in found.reads[1:])


def _read_elements(node: node_def_pb2.NodeDef, types: Sequence[int], shapes: attr_value_pb2.AttrValue) -> None:
  node.op = replica_reads.READ
  node.ClearField("experimental_type")
  node.attr["output_types"].list.type[:] = types
  node.attr["output_shapes"].CopyFrom(shapes)
