# SPDX-License-Identifier: Apache-2.0
"""What `tf.staging.StatsHook` reports: a line about each stage of a session, and scalars for TensorBoard."""

import dataclasses
import time
from typing import Any
from typing import Optional

from tensorflow.core.framework import summary_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import tensor_util
from tensorflow.python.platform import tf_logging
from tensorflow.python.profiler import trace
from tensorflow.python.training import training_util

from tensorflow_staging.python.session import busy_cores
from tensorflow_staging.python.stats import advice
from tensorflow_staging.python.stats import ended_sessions
from tensorflow_staging.python.stats import ended_stages
from tensorflow_staging.python.stats import gain
from tensorflow_staging.python.stats import period as period_lib
from tensorflow_staging.python.stats import stage_data
from tensorflow_staging.python.stats import stage_stats


@dataclasses.dataclass(frozen=True)
class StageReport:
  """What a stage has done since the last report.

  Attributes:
    stage: The statistics of the stage, now.
    period: What it did in the time between.
    global_step: The global step of the session; None if it has none, or if nobody asked.
  """

  stage: stage_stats.StageStats
  period: period_lib.Period
  global_step: Optional[int]


class StageReports:
  """The reports on the stages of one session, which this does not keep alive. For one thread at a time."""

  def __init__(self, writer: Any = None):
    """Begins the period of the first report.

    Args:
      writer: A `tf.compat.v1.summary.FileWriter` for the scalars; None writes none.
    """
    self._writer = writer
    # The statistics of each stage in the last report, and its time.
    self._last: dict[str, stage_stats.StageStats] = {}
    self._last_time = time.monotonic()
    self._last_cores = busy_cores.now()
    self._found_stages = False
    # Why there was no stage in the last report.
    self._without = ""

  def read(self, session: session_lib.BaseSession) -> list[StageReport]:
    """Returns a report on each stage of the session. Waits for the session's server.

    Raises:
      tf.errors.UnimplementedError: If the graph was written by a version without statistics.
      tf.errors.OpError: If the session cannot run, for example because its server was lost.
      RuntimeError: If the session is closed.
    """
    stages = stage_stats.stats(session)
    self._without = "" if stages else str(stages)
    global_step = _global_step(session) if stages and self._writer is not None else None
    now, cores = time.monotonic(), busy_cores.now()
    busy, own = busy_cores.busy(self._last_cores, cores), busy_cores.own(self._last_cores, cores)
    reports = []
    for stage in stages:
      period = period_lib.Period.between(self._last.get(stage.name), stage, now - self._last_time, busy, own)
      reports.append(StageReport(stage, period, global_step))
    self._last = {stage.name: stage for stage in stages}
    self._last_time, self._last_cores = now, cores
    return reports

  def publish_end(self, session: session_lib.BaseSession) -> None:
    """Writes what the stages of the session have done in all, once they have ended. They log it by themselves."""
    if self._writer is None:
      return
    stages = ended_sessions.of_ended(session)
    global_step = _global_step(session) if stages else None
    for stage in stages:
      report = StageReport(stage, period_lib.Period.of_life(stage), global_step)
      self._write(report, ended_stages.line(stage))

  def publish(self, reports: list[StageReport]) -> None:
    """Logs and writes what `read` has returned; without a stage, warns once that there is none."""
    if not reports and not self._found_stages:
      tf_logging.warning("tf.staging.StatsHook has nothing to report: %s", self._without)
    self._found_stages = True
    for report in reports:
      line = advice.line(report.stage, report.period)
      tf_logging.info("%s", line)
      with trace.Trace(line):
        pass  # In a profiler's trace, the line is an event.
      if self._writer is not None:
        self._write(report)

  def _write(self, report: StageReport, verdict: str = "") -> None:
    values = _scalars(report.stage, report.period)
    summary = summary_pb2.Summary(value=[
        summary_pb2.Summary.Value(tag=f"staging/{report.stage.name}/{name}", simple_value=value)
        for name, value in values.items()
    ])
    if verdict:
      text = summary.value.add(tag=f"staging/{report.stage.name}/verdict")
      text.metadata.plugin_data.plugin_name = "text"
      text.tensor.CopyFrom(tensor_util.make_tensor_proto([verdict]))
    self._writer.add_summary(summary, report.stage.taken if report.global_step is None else report.global_step)


def _scalars(stage: stage_data.StageData, period: period_lib.Period) -> dict[str, float]:
  """Returns the scalars of a report by name. Times are in milliseconds; those that were not measured are left out."""
  times = {
      "step_ms": period.step_seconds,
      "region_ms": period.region_seconds,
      "hidden_ms": gain.hidden_seconds(period),
  }
  return {
      "records": stage.records,
      "records_per_sec": period.records_per_second,
      "step_waits": period.step_waits,
      "producer_waits": period.producer_waits,
      "capacity": stage.capacity,
      "producers": stage.num_threads,
      **{name: 1000 * seconds for name, seconds in times.items() if seconds is not None},
  }


def _global_step(session: session_lib.BaseSession) -> Optional[int]:
  tensor = training_util.get_global_step(session.graph)
  return None if tensor is None else training_util.global_step(session, tensor)
