# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.stats`: the statistics of the stages that run in a session."""

import dataclasses
from collections.abc import Iterable
from typing import Any
from typing import Optional
from typing import Union

from tensorflow.core.protobuf import error_codes_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import errors
from tensorflow.python.training import monitored_session
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import uncalled
from tensorflow_staging.python.ahead import ahead
from tensorflow_staging.python.ahead import hints
from tensorflow_staging.python.ahead import iterator_counts
from tensorflow_staging.python.session import all_sessions
from tensorflow_staging.python.session import started_runners
from tensorflow_staging.python.stats import advice
from tensorflow_staging.python.stats import gain
from tensorflow_staging.python.stats import period as period_lib
from tensorflow_staging.python.stats import stage_data
from tensorflow_staging.python.stats import stats_html
from tensorflow_staging.python.stats import why_no_stage

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


@tf_export("staging.stats")
def stats(
    session: Union[session_lib.BaseSession, monitored_session.MonitoredSession, ahead.AheadStep, Any]) -> Stats:
  """Returns the statistics of the stages that run in a session, of a step of `tf.staging.ahead`, or of a callback.

  For example:

  ```python
  import tensorflow as tf

  with tf.Graph().as_default():
    dataset = tf.compat.v1.data.Dataset.range(100)
    record = tf.staged(tf.compat.v1.data.make_one_shot_iterator(dataset).get_next(), capacity=4)
    with tf.compat.v1.Session() as sess, tf.make_prefetch_hook().running(sess):
      for _ in range(10):
        sess.run(record)
      print(tf.staging.stats(sess))
      for stage in tf.staging.stats(sess):
        print(f"{stage.name}: {stage.taken} records taken, {stage.records} of {stage.capacity} in the buffer")
  ```

  It takes as long as a run of one op: about 0.1 ms in a local session.

  Args:
    session: A `tf.compat.v1.Session` whose stages `tf.make_prefetch_hook()` runs, or the
      `MonitoredSession` around it; or what `tf.staging.ahead` has returned, which has a stage for each iterator; or a
      callback `tf.staging.SmartStage()`: then those of its training and validation, each summed up over the epochs of
      the latest `fit`.

  Returns:
    A list with a `StageStats` for each stage: a data class with the attributes `name`, `running`, `num_threads`,
    `keeps_order`, `capacity`, `room`, `autotune`, `capacity_bytes`, `records`, `bytes`, `put`, `taken`, `dropped`,
    `discarded`, `ignored`, `waiting_puts`, `waiting_takes`, `put_wait`, `take_wait`, `error`, `capacity_settled`,
    `tunes_threads`, `threads_settled`, `orders_threads`, `steps`, `region`, `cores_busy`, `own_busy` and `gain`,
    which its own documentation explains. It prints as one line for each stage: what it has done, what it gained, and
    what to do next. The list is empty if no stages run in the session, and then prints why.

  Raises:
    TypeError: If `session` is none of these.
    tf.errors.UnimplementedError: If the graph was written by a version without statistics.
    tf.errors.OpError: If the session cannot run, for example because its server was lost.
  """
  if isinstance(session, ahead.AheadStep):
    stages = stages_of(_counts_of_iterators(stage.counts(), is_alive=True) for stage in session.stages())
    return Stats(stages, without="" if stages else f"no stage runs: {session.why_no_stage()}.")
  if isinstance(session, ahead.OwnsSteps):
    stages = in_all(session.steps())
    return Stats(stages, without="" if stages else f"no stage has run: {session.why_no_stage()}.")
  session = _session_of(session)
  stages = stages_of(all_sessions.stats(session)) if session is not None else []
  return Stats(stages, without="" if stages else why_no_stage.reason(session))


def in_all(steps: Iterable[ahead.AheadStep]) -> list[StageStats]:
  """Returns the statistics of each step that has had stages, summed up over all of its iterators."""
  counts = [(step.counts(), bool(step.stages())) for step in steps]
  return stages_of(_counts_of_iterators(counted, is_alive) for counted, is_alive in counts if counted is not None)


def stages_of(counts: Iterable[started_runners.StageCounts]) -> list[StageStats]:
  """Returns the statistics for what has been counted of some stages."""
  return [_stage_stats(*counted) for counted in counts]


def _session_of(session: Any) -> Optional[session_lib.BaseSession]:
  """Returns the session that does the work; None if a monitored session has been closed."""
  if isinstance(session, monitored_session._MonitoredSession):
    return session._tf_sess() if session._sess is not None else None
  if isinstance(session, session_lib.BaseSession):
    return session
  uncalled.check(session)
  raise TypeError(
      "session must be a tf.compat.v1.Session, a MonitoredSession, a step of tf.staging.ahead or a callback"
      " tf.staging.SmartStage(), got"
      f" {session!r} of type {type(session).__name__}.{hints.hint_for(session, 'tf.staging.stats')}")


def _counts_of_iterators(counts: iterator_counts.IteratorCounts, is_alive: bool) -> started_runners.StageCounts:
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
  return started_runners.StageCounts(runner, counts.buffer, None, counts.cores_busy, counts.own_busy)


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
      records=buffer["records"],
      bytes=buffer["bytes"],
      put=buffer["put"],
      taken=buffer["taken"],
      dropped=buffer["dropped"],
      discarded=buffer["discarded"],
      ignored=runner["ignored"],
      waiting_puts=buffer["waiting_puts"],
      waiting_takes=buffer["waiting_takes"],
      put_wait=_wait_stats(buffer["put_waits"]),
      take_wait=_wait_stats(buffer["take_waits"]),
      error=_error(buffer["error_code"], buffer["error_message"]),
      capacity_settled=buffer["capacity_settled"],
      tunes_threads=runner["tunes_threads"],
      threads_settled=runner["threads_settled"],
      orders_threads=runner.get("orders_threads", False),
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
