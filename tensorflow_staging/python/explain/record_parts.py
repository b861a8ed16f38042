# SPDX-License-Identifier: Apache-2.0
"""In which memory the tensors of a record wait for the step, for `tf.staging.explain`."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Optional

from tensorflow_staging.python.explain import explain_data

HOST = "host"

# The part of a device's name that all devices of a program without a cluster have.
_THIS_PROCESS = "/job:localhost/replica:0/task:0"
# How many tensors a line names.
_MAX_TENSORS = 5


def of(
    tensors: Sequence[explain_data.BoundaryTensor],
    destinations: Sequence[tuple[str, Sequence[int]]]) -> tuple[explain_data.RecordPart, ...]:
  """Returns the parts of a record, that of the host first.

  Args:
    tensors: The tensors of the record.
    destinations: What each GPU gets, by index. The first one gets it in place of the host; further ones get copies.
  """
  moved = destinations[0][1] if destinations else ()
  parts = [(HOST, [i for i in range(len(tensors)) if i not in moved]), *destinations]
  return tuple(
      explain_data.RecordPart(device, tuple(tensors[i] for i in indices)) for device, indices in parts if indices)


def lines(
    parts: Optional[Sequence[explain_data.RecordPart]], described: Callable[[explain_data.BoundaryTensor], str],
    unknown: str) -> tuple[str, list[str]]:
  """Returns a title, and a line of text for each part if there is another one than that of the host.

  Args:
    parts: The parts, or None if they are not known.
    described: Returns a tensor with its type and shape.
    unknown: What to say then.
  """
  if parts is None:
    return unknown, []
  if all(part.device == HOST for part in parts):
    return "A record waits for the step in host memory", []
  return "Where a record waits for the step", [_line(part, described) for part in parts]


def _line(part: explain_data.RecordPart, described: Callable[[explain_data.BoundaryTensor], str]) -> str:
  where = "in host memory" if part.device == HOST else f"on {part.device.removeprefix(_THIS_PROCESS)}"
  more = f", and {len(part.tensors) - _MAX_TENSORS} more" if len(part.tensors) > _MAX_TENSORS else ""
  return f"{where}: {', '.join(described(tensor) for tensor in part.tensors[:_MAX_TENSORS])}{more}"
