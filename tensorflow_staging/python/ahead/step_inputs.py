# SPDX-License-Identifier: Apache-2.0
"""What the inputs of a traced step stand for. The graph does not show it, so the values are asked."""

from collections.abc import Collection
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import Optional

from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.eager import context
from tensorflow.python.eager import execute
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops

from tensorflow_staging.python.ahead import one_device

# The ops that use a variable's handle without changing the variable.
_READS = frozenset({
    "Identity", "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarIsInitializedOp", "VariableShape"
})
# Those of tables.
_TABLE_READS = ("LookupTableFind", "LookupTableSize", "LookupTableExport")
# The attribute of an iterator that has what `_resources_of_datasets` returns.
_RESOURCES = "_staging_resources"


class StepInput(NamedTuple):
  """One input of a step, as `divide_step` of `_pywrap_staging` expects it.

  Attributes:
    kind: "iterator", "table" (that nothing changes), "constant", "variable" (or another resource that may change),
      "shared variable" (of which no copy may stand in its place) or "other".
    name: Its name, for reasons.
    shape: The shape of a constant; None otherwise.
  """

  kind: str
  name: str
  shape: Optional[list[int]]


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
  names = {id(variable.handle): variable.name for variable in variables}
  captured = {id(value) for value in graph.external_captures}
  handles = {id(iterator._iterator_resource) for iterator in iterators}  # pylint: disable=protected-access
  described = []
  for i, (tensor, value) in enumerate(zip(graph.inputs, values)):
    name = names.get(id(value), tensor.op.name).partition(":")[0]
    if id(value) in shared:
      described.append(StepInput("shared variable", name, None))
    else:
      described.append(_describe(value, name, i >= num_arguments and id(value) in captured, handles))
  return described


def _describe(value: Any, name: str, is_captured: bool, handles: set[int]) -> StepInput:
  if id(value) in handles:
    return StepInput("iterator", name, None)
  if not isinstance(value, ops.EagerTensor):
    return StepInput("other", name, None)
  if value.dtype == dtypes.resource:
    is_table = is_captured and _kind_of_resource(value) == "table"
    return StepInput("table" if is_table else "variable", name, None)
  # A variant, such as a list of tensors, may be changed in place.
  if is_captured and value.dtype != dtypes.variant:
    return StepInput("constant", name, value.shape.as_list())
  return StepInput("other", name, None)


def _kind_of_resource(handle: ops.EagerTensor) -> str:
  kind, = execute.execute(b"StepInputKind", 1, [handle], (), context.context())
  return kind.numpy().decode()


def changed_by_step(graph: Any) -> list[int]:
  """Returns the indices of the inputs of a traced function that are variables or tables, and that it may change."""
  return [
      i for i, tensor in enumerate(graph.inputs) if tensor.dtype == dtypes.resource and
      not all(op.type in _READS or op.type.startswith(_TABLE_READS) for op in tensor.consumers())
  ]


def changed_by_step_and_read_by_dataset(
    graph: Any, values: Sequence[Any], changes: Sequence[int], iterators: Sequence[iterator_ops.OwnedIterator]
) -> Optional[str]:
  """Returns the name of a variable or table that a step changes and that its data is made from, or None.

  Elements that are made ahead would miss the change.

  Args:
    graph: The step's `FuncGraph`.
    values: The values of its inputs.
    changes: What `changed_by_step` has returned for it.
    iterators: The iterators that it reads.
  """
  for iterator in iterators:
    read = _resources_of_datasets(iterator)
    for i in changes if read else ():
      if id(values[i]) in read:
        return graph.inputs[i].op.name
  return None


def _resources_of_datasets(iterator: iterator_ops.OwnedIterator) -> frozenset[int]:
  """Returns the ids of the variables and tables from which the elements of an iterator are made."""
  # The datasets, which live as long as the iterator, keep them alive. Many datasets take long to visit.
  read = getattr(iterator, _RESOURCES, None)
  if read is None:
    read = frozenset(
        id(value) for dataset in one_device.datasets_of(iterator) for value in _captured_by_dataset(dataset)
        if getattr(value, "dtype", None) == dtypes.resource)
    setattr(iterator, _RESOURCES, read)
  return read


def _captured_by_dataset(dataset: dataset_ops.DatasetV2) -> list[Any]:
  captured, to_visit, seen = [], [dataset], set()
  while to_visit:
    at = to_visit.pop()
    if id(at) in seen:
      continue
    seen.add(id(at))
    to_visit.extend(at._inputs())  # pylint: disable=protected-access
    for function in at._functions():  # pylint: disable=protected-access
      captured.extend(function.function.captured_inputs)
  return captured
