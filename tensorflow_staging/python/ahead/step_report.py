# SPDX-License-Identifier: Apache-2.0
"""What `tf.staging.explain` says of the steps of `tf.staging.ahead`."""

import dataclasses
from typing import Optional

from tensorflow.python.framework import dtypes
from tensorflow.python.framework import tensor_shape

from tensorflow_staging.python.ahead import step_division
from tensorflow_staging.python.explain import explain_data
from tensorflow_staging.python.explain import record_parts

_NOT_RUN = "Where a record waits for the step is known once the step has run"

# How many names of each kind the text has.
_MOST_NAMES = 10


@dataclasses.dataclass(frozen=True)
class DividedStep:
  """What of one trace of a step runs ahead.

  Attributes:
    name: The name of the step.
    why_not: Why nothing runs ahead, as the end of a sentence; None if something does.
    nodes: The names of the nodes that run ahead.
    boundary: The tensors of a record.
    outside: The first nodes that use them and stay in the step, each with the reason.
    parts: Where the tensors of a record wait for the step; None if that is not known before it has run.
  """
  name: str
  why_not: Optional[str]
  nodes: tuple[str, ...] = ()
  boundary: tuple[explain_data.BoundaryTensor, ...] = ()
  outside: tuple[explain_data.OutsideNode, ...] = ()
  parts: Optional[tuple[explain_data.RecordPart, ...]] = None

  def __str__(self) -> str:
    if self.why_not is not None:
      return f"'{self.name}' runs without a stage: {self.why_not}."
    lines = [f"'{self.name}': {_count(self.nodes, 'node')} run ahead, and a record carries"
             f" {_count(self.boundary, 'tensor')}."]
    lines += _listed("Ahead", self.nodes)
    lines += _listed("In a record", [_described(tensor) for tensor in self.boundary])
    title, parts = record_parts.lines(self.parts, _described, _NOT_RUN)
    lines += _listed(title, parts) or [f"  {title}."]
    lines += _listed("In the step", self.outside)
    return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class StepReport:
  """What runs ahead of the steps that `tf.staging.ahead` or `tf.staging.SmartStage` has wrapped; `str()` of it is text.

  Attributes:
    steps: One for each trace with which a step was called.
  """
  steps: tuple[DividedStep, ...]

  def __str__(self) -> str:
    return "\n\n".join(str(step) for step in self.steps) or "The step has not been called yet."


def divided_step(name: str, division: step_division.StepDivision) -> DividedStep:
  """Describes a trace that was divided."""
  boundary = tuple(
      explain_data.BoundaryTensor(tensor, dtypes.as_dtype(dtype), _shape(shape))
      for tensor, dtype, shape in division.record)
  return DividedStep(
      name=name,
      why_not=None,
      nodes=tuple(division.nodes_ahead),
      boundary=boundary,
      outside=tuple(explain_data.OutsideNode(*node) for node in division.outside),
      parts=None if division.destinations is None else record_parts.of(boundary, division.destinations))


def _described(tensor: explain_data.BoundaryTensor) -> str:
  return f"{tensor.name} ({tensor.dtype.name}, shape {tensor.shape})"


def _shape(text: str) -> tensor_shape.TensorShape:
  """Reads a shape as C++ writes it: "[?,3]", or "<unknown>"."""
  if not text.startswith("["):
    return tensor_shape.TensorShape(None)
  dims = [dim for dim in text.strip("[]").split(",") if dim]
  return tensor_shape.TensorShape([None if dim == "?" else int(dim) for dim in dims])


def _count(items: tuple, noun: str) -> str:
  return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def _listed(title: str, items) -> list[str]:
  if not items:
    return []
  more = [f"    and {len(items) - _MOST_NAMES} more"] if len(items) > _MOST_NAMES else []
  return [f"  {title}:", *(f"    {item}" for item in items[:_MOST_NAMES]), *more]
