# SPDX-License-Identifier: Apache-2.0
"""Says in plain words what a stage did in a period, and what to change."""

import dataclasses
from typing import Optional

from tensorflow_staging.python.stats import stage_stats

# Below this part of the time, waits do not matter.
_TOLERATED = 0.05
_MIB = 2**20


@dataclasses.dataclass(frozen=True)
class Period:
  """What a stage did in a period.

  Attributes:
    records_per_second: How many records steps took in a second.
    step_waits: For which part of the time, from 0 to 1, steps waited for records.
    producer_waits: For which part of the time producers waited for room, on average over them.
  """

  records_per_second: float
  step_waits: float
  producer_waits: float

  @classmethod
  def between(
      cls, before: Optional[stage_stats.StageStats], after: stage_stats.StageStats, seconds: float) -> "Period":
    """Returns what a stage did between two moments.

    Args:
      before: The statistics of the first moment, or None if the counters began there.
      after: The statistics of the second moment.
      seconds: The time in between.
    """

    def grown(get) -> float:
      return get(after) - (get(before) if before is not None else 0)

    def part(waited: float, waiters: int) -> float:
      # A wait counts when it ends, and may have begun before the period.
      return min(1.0, waited / (seconds * max(1, waiters))) if seconds > 0 else 0.0

    taken = grown(lambda stats: stats.taken)
    # A wait that fills the whole period has not ended in it.
    waits_all_the_time = before is not None and taken == 0 and min(before.waiting_takes, after.waiting_takes) > 0
    return cls(
        records_per_second=taken / seconds if seconds > 0 else 0.0,
        step_waits=1.0 if waits_all_the_time else part(grown(lambda stats: stats.take_wait.total_seconds), 1),
        producer_waits=part(grown(lambda stats: stats.put_wait.total_seconds), after.num_threads))


def line(stage: stage_stats.StageStats, period: Period) -> str:
  """Returns one line about a stage: what it did in `period`, and what to change."""
  later = f" (later {stage.capacity})" if stage.room < stage.capacity else ""
  return (
      f"Stage '{stage.name}': {period.records_per_second:.1f} records/s, {stage.records} of {stage.room}{later} in the"
      f" buffer ({stage.bytes / _MIB:.1f} MiB). Steps waited for records {period.step_waits:.0%} of the time,"
      f" producers for room {period.producer_waits:.0%}: {_advice(stage, period)}")


def _advice(stage: stage_stats.StageStats, period: Period) -> str:
  if stage.error is not None and not stage.running:
    return f"the stage has ended ({stage.error})"
  if stage.waiting_takes > 0 and period.records_per_second == 0:
    return "a step waits, and no record has come; the input of the stage is slow, or hangs."
  if period.step_waits <= _TOLERATED:
    return "the step hardly waits; nothing to change."
  if period.producer_waits <= _TOLERATED:
    return f"the stage is slower than the step; raise num_threads (now {stage.num_threads})."
  if stage.autotune:
    return "the times of steps and records vary, and the buffer adapts its capacity."
  if stage.room < stage.capacity:
    return "the times of steps and records vary, and the buffer still grows to its capacity."
  return (
      "the times of steps and records vary; raise capacity"
      f" (now {stage.capacity}), or set it to tf.data.AUTOTUNE.")
