# SPDX-License-Identifier: Apache-2.0
"""Which ops of a graph a step needs: its sources, and those that draw, count or have a visible side effect."""

from __future__ import annotations

import re
from collections.abc import Collection
from collections.abc import Iterable

import tensorflow as tf

# The types of the ops that yield records.
SOURCE_TYPES = ("IteratorGetNext", "TensorBufferTake")

# The types of the ops that draw random numbers, keep a count, or have a visible side effect.
_STATEFUL = re.compile(
    "(Random|Truncated|Multinomial|PyFunc$|EagerPyFunc|Assert|Print|If$|While$).*")


def sources(graph: tf.Graph) -> set[tf.Operation]:
  """Returns the ops from which a step takes records."""
  return {op for op in graph.get_operations() if op.type in SOURCE_TYPES} - manual_regions(graph)


def error_may_differ(graph: tf.Graph) -> bool:
  """Whether a step may meet two errors at once, and report either of them.

  This can happen if one source ends while the record of another fails, or while a check of the step's own values fails.
  """
  checks = [op for op in graph.get_operations() if op.type == "Assert"]
  step_values = {"VarHandleOp", "VariableV2", "Placeholder", "PlaceholderWithDefault"}
  return len(sources(graph)) > 1 or any(op.type in step_values for op in of(checks))


def stateful_ops(graph: tf.Graph) -> set[tf.Operation]:
  """Returns the ops of a step that draw random numbers, keep a count, or have a visible side effect."""
  return stateful(graph.get_operations()) - manual_regions(graph)


def stateful(ops: Iterable[tf.Operation]) -> set[tf.Operation]:
  """Returns those of the ops that draw random numbers, keep a count, or have a visible side effect."""
  return {op for op in ops if _STATEFUL.match(op.type) and op.op_def.is_stateful}


def manual_regions(graph: tf.Graph) -> set[tf.Operation]:
  """Returns the ops in the regions of manual stages."""
  return of([op for op in graph.get_operations() if op.type == "TensorBufferPut"])


def of(
    elements: Iterable[tf.Tensor | tf.Operation], fed: Collection[str] = ()) -> set[tf.Operation]:
  """Returns the ops that a step runs to compute these elements if it feeds the tensors named in `fed`."""
  found: set[tf.Operation] = set()
  waiting: list[tf.Operation] = [
      element if isinstance(element, tf.Operation) else element.op for element in elements
  ]
  while waiting:
    op = waiting.pop()
    if op in found:
      continue
    found.add(op)
    waiting.extend(op.control_inputs)
    waiting.extend(tensor.op for tensor in op.inputs if tensor.name not in fed)
  return found


def need_draw(graph: tf.Graph, names: Iterable[str]) -> bool:
  """Whether a step that computes these tensors and ops draws random numbers, keeps a count or has a side effect."""
  elements = [graph.as_graph_element(name) for name in names]
  return bool(stateful(of(elements)))


def has_op(graph: tf.Graph, name: str) -> bool:
  """Whether the graph has an op of this name."""
  return any(op.name == name for op in graph.get_operations())


def need_op(graph: tf.Graph, name: str, op: str) -> bool:
  """Whether a step that computes the tensor or op `name` runs the op of this name."""
  return any(needed.name == op for needed in of([graph.as_graph_element(name)]))
