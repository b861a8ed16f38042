# SPDX-License-Identifier: Apache-2.0
"""What the datasets behind an iterator read that may change: elements that are made ahead would miss the change."""

from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import Optional

from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.eager import context
from tensorflow.python.framework import dtypes

from tensorflow_staging.python.ahead import function_library
from tensorflow_staging.python.ahead import step_inputs
from tensorflow_staging.python.ahead import strategy_iterators

# The ops that read a variable.
_READS = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd"})
# How those of tables begin.
_TABLE_OPS = "LookupTable"
# The attribute of an iterator that has what `_resources_read` returns.
_RESOURCES = "_staging_resources"


def changed_by_step(
    graph: Any, values: Sequence[Any], changes: Sequence[int], iterators: Sequence[iterator_ops.OwnedIterator]
) -> Optional[str]:
  """Returns the name of a variable or table that a step changes and that its data is made from, or None.

  Args:
    graph: The step's `FuncGraph`.
    values: The values of its inputs.
    changes: What `changed_resources.of_graph` has returned for it.
    iterators: The iterators that it reads.
  """
  for iterator in iterators if changes else ():
    read = _resources_read(iterator)
    for i in changes:
      if id(values[i]) in read:
        return graph.inputs[i].op.name
  return None


def changing_state_read(iterators: Sequence[iterator_ops.OwnedIterator]) -> Optional[str]:
  """Returns what the data is made from that something may change, such as "variable 'scale'", or None.

  That are variables, and tables with other writers than their initialiser. The states of random generators do not
  count: the data itself draws from them, one element after the other.

  Args:
    iterators: The iterators of the data.
  """
  for function in (function for iterator in iterators for function in _functions(iterator)):
    names = step_inputs.by_handle(function.graph.variables)
    read = None
    for value, inside in function.graph.captures:
      if value.dtype != dtypes.resource:
        continue
      kind = step_inputs.kind_of_resource(value)
      if kind == "other" and _is_table(inside):
        return "a table"  # Most have only the name of an op.
      if kind != "variable":
        continue
      if read is None:
        read = _types_read(function.function_def)
      variable = names.get(id(value))
      if variable is None and read:
        return "a variable"
      if variable is not None and variable.dtype.as_datatype_enum in read:
        return f"variable '{variable.name.partition(':')[0]}'"
  return None


def _is_table(handle: Any) -> bool:
  """Returns whether a function uses one of its inputs as a table, or may do so in a function that it calls."""
  for op in handle.consumers():
    if op.type.startswith(_TABLE_OPS):
      return True
    called = function_library.called_by(op.node_def)
    library = [context.context().get_function_def(name) for name in called]
    if any(node.op.startswith(_TABLE_OPS) for function in library
           for inner in function_library.library_of(function).function for node in inner.node_def):
      return True
  return False


def _types_read(function: Any) -> set[int]:
  """Returns the types of the variables that a function reads, or one that it calls."""
  return {
      node.attr["dtype"].type for called in function_library.library_of(function).function
      for node in called.node_def if node.op in _READS
  }


def _resources_read(iterator: iterator_ops.OwnedIterator) -> frozenset[int]:
  """Returns the ids of the variables and tables from which the elements of an iterator are made."""
  # The datasets, which live as long as the iterator, keep them alive. Many datasets take long to visit.
  read = getattr(iterator, _RESOURCES, None)
  if read is None:
    read = frozenset(
        id(value) for function in _functions(iterator) for value in function.captured_inputs
        if getattr(value, "dtype", None) == dtypes.resource)
    setattr(iterator, _RESOURCES, read)
  return read


def _functions(iterator: iterator_ops.OwnedIterator) -> Iterator[Any]:
  """Yields the functions of the datasets that make the elements of an iterator."""
  to_visit: list[dataset_ops.DatasetV2] = list(strategy_iterators.datasets_of(iterator))
  seen = set()
  while to_visit:
    at = to_visit.pop()
    if id(at) in seen:
      continue
    seen.add(id(at))
    to_visit.extend(at._inputs())  # pylint: disable=protected-access
    for function in at._functions():  # pylint: disable=protected-access
      yield function.function
