# SPDX-License-Identifier: Apache-2.0
"""What the stage of an iterator has counted, and the sum over the iterators of a step, such as those of each epoch."""

import dataclasses
from collections.abc import Sequence
from typing import Any
from typing import Optional

# The fields of BufferStats that count from the beginning of a buffer on; of these, the ones that are messages.
_COUNTERS = ("put", "taken", "dropped", "discarded", "kept_on_host", "steps", "step_micros", "step_wait_micros")
_WAITS = ("put_waits", "take_waits")
_WAIT_COUNTERS = ("calls", "waits", "total_micros")


@dataclasses.dataclass(frozen=True)
class IteratorCounts:
  """What has been counted of one stage, or of several as if they were one.

  Attributes:
    name: The name of the stage.
    num_threads: How many threads run the part ahead.
    tunes_threads: Whether their number is chosen while they run.
    threads_settled: Whether the choice has settled.
    buffer: The fields of the message BufferStats by name.
    timed_records: How many records were timed.
    record_micros: How many microseconds these took, the waits for room included.
    seconds: How long it has been there.
    cores_busy: Which part of that time the cores were busy, from 0 to 1; None if that is unknown.
    own_busy: Which part of it this process itself kept them busy.
  """

  name: str
  num_threads: int
  tunes_threads: bool
  threads_settled: bool
  buffer: dict[str, Any]
  timed_records: int
  record_micros: int
  seconds: float = 0.0
  cores_busy: Optional[float] = None
  own_busy: Optional[float] = None


def in_all(counts: Sequence[IteratorCounts]) -> IteratorCounts:
  """Returns the sum of what several stages have counted; what is no counter is that of the last one.

  Args:
    counts: One or more, in the order in which the stages began.
  """
  last = counts[-1]
  buffers = [each.buffer for each in counts]
  buffer = dict(last.buffer)
  for name in _COUNTERS:
    buffer[name] = sum(each[name] for each in buffers)
  for waits in _WAITS:
    buffer[waits] = {
        **last.buffer[waits],
        **{name: sum(each[waits][name] for each in buffers) for name in _WAIT_COUNTERS}
    }
  return dataclasses.replace(
      last, buffer=buffer, timed_records=sum(each.timed_records for each in counts),
      record_micros=sum(each.record_micros for each in counts), seconds=sum(each.seconds for each in counts),
      cores_busy=_mean([(each.cores_busy, each.seconds) for each in counts]),
      own_busy=_mean([(each.own_busy, each.seconds) for each in counts]))


def _mean(parts: Sequence[tuple[Optional[float], float]]) -> Optional[float]:
  """Returns the mean of what is known, by how long it was so."""
  known = [(part, seconds) for part, seconds in parts if part is not None]
  total = sum(seconds for _, seconds in known)
  return sum(part * seconds for part, seconds in known) / total if total > 0 else None
