# SPDX-License-Identifier: Apache-2.0
"""Statistics of a stage, as a test chooses them."""

from __future__ import annotations

from tensorflow_staging.python.stats import stage_data
from tensorflow_staging.python.stats import stage_stats

_MIB = 2**20


def stats(
    taken: int = 1,
    step_waited: float = 0.0,
    producers_waited: float = 0.0,
    threads: int = 1,
    capacity: int = 1,
    room: int | None = None,
    autotune: bool = False,
    waiting_takes: int = 0,
    error: str | None = None,
    **others,
) -> stage_stats.StageStats:
  """Returns the statistics of a stage with 1.5 MiB in its buffer; `others` are further fields."""

  def waits(total: float) -> stage_data.WaitStats:
    return stage_data.WaitStats(
        calls=1, waits=1, total_seconds=total, mean_seconds=total, p50_seconds=total, p99_seconds=total)

  fields = dict(
      name="prefetch", running=error is None, num_threads=threads, capacity=capacity,
      room=capacity if room is None else room, autotune=autotune, capacity_bytes=0, records=1, bytes=3 * _MIB // 2,
      put=taken + 1, taken=taken, dropped=0, discarded=0, ignored=0, waiting_puts=0, waiting_takes=waiting_takes,
      put_wait=waits(producers_waited), take_wait=waits(step_waited), error=error)
  return stage_stats.StageStats(**fields | others)
