# SPDX-License-Identifier: Apache-2.0
"""What the workers of a strategy tell each other about their data, which stays in the step.

Each worker reads ahead for itself, and its record says how many of its replicas have data. In the step, collective ops
add that up, and the step ends if no worker has data. What uses the record waits for that.

```
  StepBufferTake ─┬─▶ how many ─▶ CollectiveReduceV2 ─▶ any? ─▶ StepNeedsData
                  │                                                   │ (control edge)
                  └─▶ elements ────────────────────────────────────▶  ▼ …
```
"""

from collections.abc import Collection
from collections.abc import Sequence
from typing import Optional

from tensorflow.core.framework import function_pb2
from tensorflow.core.framework import node_def_pb2

from tensorflow_staging.python.ahead import function_nodes

_NEEDS_DATA = "StepNeedsData"
_TAKE = "StepBufferTake"


def is_collective(node: node_def_pb2.NodeDef) -> bool:
  """Returns whether a node communicates with other workers."""
  return node.op.startswith("Collective")


def asked(told: Sequence[node_def_pb2.NodeDef], known: Collection[str]) -> Optional[dict[str, int]]:
  """Returns the names and types of the tensors with which workers ask each other.

  Args:
    told: The collective ops, and what computes with what these tell.
    known: The names of the nodes that know about the data of this worker.

  Returns:
    None if anything but a collective op uses what those nodes know.
  """
  found = {}
  for node in told:
    for i, name in enumerate(node.input):
      if function_nodes.data_name(name) in known:
        if i > 0 or not is_collective(node):  # A collective op of TensorFlow has its value first.
          return None
        found[name] = node.attr["T"].type
  return found


def need_of_data(conditional: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
  """Returns a node that ends the step where a conditional would read the end of the data."""
  node = need(conditional.name, conditional.input[0])
  node.device = conditional.device
  node.input.extend(name for name in conditional.input if name.startswith("^"))
  return node


def need(name: str, any_has_data: str) -> node_def_pb2.NodeDef:
  """Returns a node that fails as the end of an iterator does if there is no data, which a tensor says."""
  return node_def_pb2.NodeDef(name=name, op=_NEEDS_DATA, input=[any_has_data])


def elements_of(conditional: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
  """Returns a call of the branch that yields the elements, in place of a conditional."""
  node = node_def_pb2.NodeDef(name=conditional.name, op="PartitionedCall", device=conditional.device)
  node.input.extend(conditional.input[1:])
  for name, old in (("Tin", "Tin"), ("Tout", "Tout"), ("f", "then_branch")):
    node.attr[name].CopyFrom(conditional.attr[old])
  return node


def let_elements_wait(function: function_pb2.FunctionDef) -> bool:
  """Lets what uses a record in the rest of a step wait until it is known that some worker has data.

  Args:
    function: A part of a function, which changes if workers tell each other there whether they have data.

  Returns:
    False if they do, and another function takes the record.
  """
  needs = [node for node in function.node_def if node.op == _NEEDS_DATA]
  take = next((node.name for node in function.node_def if node.op == _TAKE), None)
  asking: set[str] = set()
  # What asks next waits for the answers before it.
  for need in needs:
    asking |= function_nodes.names_of([need, *function_nodes.before([need], function)])
    for node in function.node_def:
      uses = any(function_nodes.name_of(name) == take for name in node.input)
      if uses and node.name not in asking:
        node.input.append(f"^{need.name}")
  return not needs or take is not None
