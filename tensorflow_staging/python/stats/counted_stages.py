# SPDX-License-Identifier: Apache-2.0
"""The statistics of stages, made from what has been counted of them."""

import dataclasses
from collections.abc import Iterable
from typing import Any
from typing import Optional

from tensorflow.core.protobuf import error_codes_pb2
from tensorflow.python.framework import errors

from tensorflow_staging.python.ahead import ahead
from tensorflow_staging.python.ahead import iterator_counts
from tensorflow_staging.python.stats import advice
from tensorflow_staging.python.stats import gain
from tensorflow_staging.python.stats import period as period_lib
from tensorflow_staging.python.stats import stage_counts
from tensorflow_staging.python.stats import stage_data
from tensorflow_staging.python.stats import stats_html

_MICRO = 1e-6
# The states of a buffer that gets no more records.
_OVER = ("ending", "closed")


@dataclasses.dataclass(frozen=True)
class StageStats(stage_data.StageData):
  """The statistics of one stage, at one moment; `stage_data.StageData` has its attributes.

  `str()` of it is one line: what the stage has done so far, what it gained, and what to do next. It leaves out what
  came before the first record, and pauses of the program, as for an evaluation.
  """

  @property
  def gain(self) -> str:
    """What the stage has gained so far, in words, such as "hid about 3.1 of 9.0 ms a step; steps waited for records 1%
    of the time"."""
    return gain.sentence(period_lib.Period.of_life(self))

  def __str__(self) -> str:
    return advice.line(self, period_lib.Period.of_life(self))


class Stats(list[StageStats]):
  """The statistics of the stages of a session: a list that prints a line for each, or why there is none."""

  def __init__(self, stages: Iterable[StageStats], without: str = ""):
    """Creates the list.

    Args:
      stages: The statistics.
      without: What to print if there are none.
    """
    super().__init__(stages)
    self._without = without

  def __repr__(self) -> str:
    return "\n".join(str(stage) for stage in self) if self else self._without

  def _repr_html_(self) -> str:
    """Returns what a notebook shows."""
    return stats_html.html([(stage, period_lib.Period.of_life(stage)) for stage in self], self._without)


def of_what_has_steps(value: Any) -> Optional[Stats]:
  """Returns the statistics of a step of `tf.staging.ahead` or of a callback; None for anything else."""
  if isinstance(value, ahead.AheadStep):
    stages = stages_of(_counts_of_iterators(stage.counts(), is_alive=True) for stage in value.stages())
    return Stats(stages, without="" if stages else f"no stage runs: {value.why_no_stage()}.")
  if isinstance(value, ahead.OwnsSteps):
    stages = in_all(value.steps())
    return Stats(stages, without="" if stages else f"no stage has run: {value.why_no_stage()}.")
  return None


def in_all(steps: Iterable[ahead.AheadStep]) -> list[StageStats]:
  """Returns the statistics of each step that has had stages, summed up over all of its iterators."""
  counts = [(step.counts(), bool(step.stages())) for step in steps]
  return stages_of(_counts_of_iterators(counted, is_alive) for counted, is_alive in counts if counted is not None)


def stages_of(counts: Iterable[stage_counts.StageCounts]) -> list[StageStats]:
  """Returns the statistics for what has been counted of some stages."""
  return [_stage_stats(*counted) for counted in counts]


def _counts_of_iterators(counts: iterator_counts.IteratorCounts, is_alive: bool) -> stage_counts.StageCounts:
  """Returns what has been counted of the stages of iterators, in the form in which sessions count."""
  runner = {
      "name": counts.name,
      "running": is_alive and counts.buffer["state"] == "open",
      "threads": counts.num_threads,
      "ignored": 0,
      "tunes_threads": counts.tunes_threads,
      "threads_settled": counts.threads_settled,
      "orders_threads": True,
      "timed_records": counts.timed_records,
      "record_micros": counts.record_micros,
  }
  return stage_counts.StageCounts(runner, counts.buffer, None, counts.cores_busy, counts.own_busy)


def _stage_stats(
    runner: dict[str, Any], buffer: dict[str, Any], earlier: Optional[dict[str, Any]],
    cores_busy: Optional[float], own_busy: Optional[float]) -> StageStats:
  return StageStats(
      name=runner["name"],
      running=runner["running"] and buffer["state"] not in _OVER,
      num_threads=runner["threads"],
      capacity=buffer["capacity"],
      room=buffer["room"],
      autotune=buffer["tunes_capacity"],
      capacity_bytes=buffer["capacity_bytes"],
      device_capacity_bytes=buffer["device_capacity_bytes"],
      records=buffer["records"],
      bytes=buffer["bytes"],
      device_bytes=buffer["device_bytes"],
      put=buffer["put"],
      taken=buffer["taken"],
      dropped=buffer["dropped"],
      discarded=buffer["discarded"],
      kept_on_host=buffer["kept_on_host"],
      ignored=runner["ignored"],
      waiting_puts=buffer["waiting_puts"],
      waiting_takes=buffer["waiting_takes"],
      put_wait=_wait_stats(buffer["put_waits"]),
      take_wait=_wait_stats(buffer["take_waits"]),
      error=_error(buffer["error_code"], buffer["error_message"]),
      capacity_settled=buffer["capacity_settled"],
      tunes_threads=runner["tunes_threads"],
      threads_settled=runner["threads_settled"],
      orders_threads=runner["orders_threads"],
      steps=stage_data.StepStats(
          buffer["steps"], buffer["step_micros"] * _MICRO, buffer["step_wait_micros"] * _MICRO),
      region=_region_stats(runner, buffer["put_waits"], earlier["put_waits"] if earlier is not None else None),
      cores_busy=cores_busy,
      own_busy=own_busy)


def _region_stats(
    runner: dict[str, Any], waits: dict[str, int], earlier: Optional[dict[str, int]]) -> stage_data.RegionStats:
  """Takes the waits for room out of the times of a runner's runs, which include them."""

  def grown(name: str) -> int:
    return waits[name] - (earlier[name] if earlier is not None else 0)

  count, seconds = runner["timed_records"], runner["record_micros"] * _MICRO
  puts = grown("calls")
  # Not every put was timed.
  waited = min(seconds, grown("total_micros") * _MICRO * min(1.0, count / puts)) if puts > 0 else 0.0
  return stage_data.RegionStats(count, seconds - waited, waited)


def _wait_stats(waits: dict[str, int]) -> stage_data.WaitStats:
  total = waits["total_micros"] * _MICRO
  return stage_data.WaitStats(
      calls=waits["calls"],
      waits=waits["waits"],
      total_seconds=total,
      mean_seconds=total / waits["calls"] if waits["calls"] else 0.0,
      p50_seconds=waits["p50_micros"] * _MICRO,
      p99_seconds=waits["p99_micros"] * _MICRO)


def _error(code: int, message: bytes) -> Optional[str]:
  if code == errors.OK:
    return None
  return f"{error_codes_pb2.Code.Name(code)}: {message.decode(errors='replace')}"
