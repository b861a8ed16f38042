# SPDX-License-Identifier: Apache-2.0
"""What a stage did in a period, from its statistics at two moments."""

import dataclasses
from typing import Optional

from tensorflow_staging.python.stats import stage_data


@dataclasses.dataclass(frozen=True)
class Period:
  """What a stage did in a period.

  Attributes:
    records_per_second: How many records steps took in a second.
    step_waits: For which part of the time, from 0 to 1, steps waited for records.
    producer_waits: For which part of the time producers waited for room, on average over them.
    steps: How many steps have been timed. Those before the first record, and the pauses of the program, are not.
    step_seconds: How long a timed step took on average; None if there was none.
    wait_seconds: How much of it the step waited for its record.
    region_seconds: How long it took to make a record, without the wait for room; None if none was timed.
    cores_busy: Which part of the time the cores were busy, from 0 to 1; None if that is unknown.
    own_busy: Which part of the time this process itself kept them busy.
  """

  records_per_second: float
  step_waits: float
  producer_waits: float
  steps: int = 0
  step_seconds: Optional[float] = None
  wait_seconds: Optional[float] = None
  region_seconds: Optional[float] = None
  cores_busy: Optional[float] = None
  own_busy: Optional[float] = None

  @classmethod
  def between(
      cls, before: Optional[stage_data.StageData], after: stage_data.StageData, seconds: float,
      cores_busy: Optional[float] = None, own_busy: Optional[float] = None) -> "Period":
    """Returns what a stage did between two moments.

    Args:
      before: The statistics of the first moment, or None if the counters began there.
      after: The statistics of the second moment.
      seconds: The time in between.
      cores_busy: Which part of it the cores were busy.
      own_busy: Which part of it this process itself kept them busy.
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
        producer_waits=part(grown(lambda stats: stats.put_wait.total_seconds), after.num_threads),
        **_times(grown),
        cores_busy=cores_busy,
        own_busy=own_busy)

  @classmethod
  def of_life(cls, stage: stage_data.StageData) -> "Period":
    """Returns what a stage has done so far, without what came before its first record and the program's pauses."""
    steps, region = stage.steps, stage.region
    in_region = region.total_seconds + region.wait_seconds
    return cls(
        records_per_second=steps.count / steps.total_seconds if steps.total_seconds > 0 else 0.0,
        step_waits=min(1.0, steps.wait_seconds / steps.total_seconds) if steps.total_seconds > 0 else 0.0,
        producer_waits=min(1.0, region.wait_seconds / in_region) if in_region > 0 else 0.0,
        **_times(lambda get: get(stage)),
        cores_busy=stage.cores_busy,
        own_busy=stage.own_busy)


def _times(grown) -> dict[str, Optional[float]]:
  """Returns the fields of a period with times of one step and one record.

  Args:
    grown: Returns by how much what it is given, a function of statistics, has grown in the period.
  """
  steps = round(grown(lambda stats: stats.steps.count))
  records = grown(lambda stats: stats.region.count)

  def mean(total: float, count: float) -> Optional[float]:
    return max(0.0, total / count) if count > 0 else None

  return {
      "steps": steps,
      "step_seconds": mean(grown(lambda stats: stats.steps.total_seconds), steps),
      "wait_seconds": mean(grown(lambda stats: stats.steps.wait_seconds), steps),
      "region_seconds": mean(grown(lambda stats: stats.region.total_seconds), records),
  }
