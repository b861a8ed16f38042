# SPDX-License-Identifier: Apache-2.0
"""What the inputs of a traced step stand for. The graph does not show it, so the values are asked."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.eager import context
from tensorflow.python.eager import execute
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops


class StepInput(NamedTuple):
  """One input of a step, as `divide_step` of `_pywrap_staging` expects it.

  Attributes:
    kind: "iterator", "table" (that nothing changes), "constant", "variable" (or another resource that may change),
      "shared variable" (of which no copy may stand in its place) or "other".
    name: Its name, for reasons.
  """

  kind: str
  name: str


def describe(
    graph: Any, values: Sequence[Any], num_arguments: int, iterators: Sequence[iterator_ops.OwnedIterator],
    shared: Collection[int] = ()) -> list[StepInput]:
  """Describes the inputs of a traced function.

  Args:
    graph: The function's `FuncGraph`.
    values: Their values, eager tensors: first the arguments, then what the function has captured.
    num_arguments: How many of the values are arguments.
    iterators: The iterators that are read ahead.
    shared: The ids of the values that are shared variables.

  Returns:
    A `StepInput` for each.
  """
  # Python may have deleted a variable, which the trace goes on using.
  variables = [variable for reference in graph._weak_variables if (variable := reference()) is not None]  # pylint: disable=protected-access
  names = {handle: variable.name for handle, variable in by_handle(variables).items()}
  captured = {id(value) for value in graph.external_captures}
  handles = {id(iterator._iterator_resource) for iterator in iterators}  # pylint: disable=protected-access
  described = []
  for i, (tensor, value) in enumerate(zip(graph.inputs, values)):
    name = names.get(id(value), tensor.op.name).partition(":")[0]
    if id(value) in shared:
      described.append(StepInput("shared variable", name))
    else:
      described.append(_describe(value, name, i >= num_arguments and id(value) in captured, handles))
  return described


def by_handle(variables: Iterable[Any]) -> dict[int, Any]:
  """Returns variables by the ids of their handles; of one of a strategy, the variable of each replica."""
  return {id(of_device.handle): of_device for variable in variables
          for of_device in getattr(variable, "values", (variable,))}


def _describe(value: Any, name: str, is_captured: bool, handles: set[int]) -> StepInput:
  if id(value) in handles:
    return StepInput("iterator", name)
  if not isinstance(value, ops.EagerTensor):
    return StepInput("other", name)
  if value.dtype == dtypes.resource:
    is_table = is_captured and kind_of_resource(value) == "table"
    return StepInput("table" if is_table else "variable", name)
  # A variant, such as a list of tensors, may be changed in place.
  if is_captured and value.dtype != dtypes.variant:
    return StepInput("constant", name)
  return StepInput("other", name)


def kind_of_resource(handle: ops.EagerTensor) -> str:
  """Returns "table" for a table that nothing changes any more, "variable" or "other"."""
  kind, = execute.execute(b"StepInputKind", 1, [handle], (), context.context())
  return kind.numpy().decode()
