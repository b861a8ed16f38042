# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.StatsHook`: logs what the stages of a session do, and what to change."""

import numbers
import os
import time
from typing import Any
from typing import Optional

from tensorflow.core.framework import summary_pb2
from tensorflow.python.platform import tf_logging
from tensorflow.python.summary.writer import writer_cache
from tensorflow.python.training import session_run_hook
from tensorflow.python.training import training_util
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python.stats import advice
from tensorflow_staging.python.stats import stage_stats

_DEFAULT_SECS = 10


@tf_export("staging.StatsHook")
class StatsHook(session_run_hook.SessionRunHook):
  """Logs what each stage of the session has done since the last time, and what to change.

  A line says how long steps have waited for records and producers for room, as a part of the time,
  and in plain words what holds training back:

  ```
  Stage 'prefetch': 41.2 records/s, 1 of 1 in the buffer (0.3 MiB). Steps waited for records 38% of the
  time, producers for room 0%: the stage is slower than the step; raise num_threads (now 1).
  ```

  The lines have the level INFO, which TensorFlow shows after
  `tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)`. If they are not shown and there is no
  `summary_writer`, or if the session has no stage, the hook warns once a session.

  For example:

  ```python
  import tensorflow as tf

  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
  with tf.Graph().as_default():
    dataset = tf.compat.v1.data.Dataset.range(100)
    record = tf.staged(tf.compat.v1.data.make_one_shot_iterator(dataset).get_next(), capacity=4)
    hooks = [tf.make_prefetch_hook(), tf.staging.StatsHook(every_n_steps=20)]
    with tf.compat.v1.train.MonitoredSession(hooks=hooks) as sess:
      while not sess.should_stop():
        sess.run(record)
  ```
  """

  def __init__(
      self,
      every_n_steps: Optional[int] = None,
      every_n_secs: Optional[float] = None,
      summary_writer: Any = None,
  ):
    """Creates the hook.

    Args:
      every_n_steps: Log after every that many steps.
      every_n_secs: Log after the first step that ends when that many seconds have passed. If neither is given,
        this is 10.
      summary_writer: A `tf.compat.v1.summary.FileWriter`, or the folder of one, to which the hook also
        writes scalars for TensorBoard: `staging/NAME/records`, `staging/NAME/records_per_sec`,
        `staging/NAME/step_waits` and `staging/NAME/producer_waits`, the latter two as a part of the time.
        None writes none.

    Raises:
      TypeError: If `every_n_steps` or `every_n_secs` is no number, or `summary_writer` none of these.
      ValueError: If both `every_n_steps` and `every_n_secs` are given, or one is not positive.
    """
    if every_n_steps is not None and every_n_secs is not None:
      raise ValueError(
          f"At most one of every_n_steps and every_n_secs may be given, got {every_n_steps!r} and {every_n_secs!r}.")
    for name, value in (("every_n_steps", every_n_steps), ("every_n_secs", every_n_secs)):
      if not isinstance(value, (numbers.Real, type(None))):
        raise TypeError(f"{name} must be a positive number, got {value!r} of type {type(value).__name__}.")
      if value is not None and value <= 0:
        raise ValueError(f"{name} must be positive, got {value!r}.")
    if isinstance(summary_writer, os.PathLike):
      summary_writer = os.fspath(summary_writer)
    if not (summary_writer is None or isinstance(summary_writer, str) or hasattr(summary_writer, "add_summary")):
      raise TypeError(
          "summary_writer must be None, a folder or a tf.compat.v1.summary.FileWriter, got"
          f" {summary_writer!r} of type {type(summary_writer).__name__}.")
    self._every_n_steps = every_n_steps
    self._every_n_secs = _DEFAULT_SECS if every_n_secs is None else every_n_secs
    self._writer = summary_writer
    # How many steps of all sessions there were, and at the last report.
    self._steps = 0
    self._last_steps = 0
    self._last: dict[str, stage_stats.StageStats] = {}
    self._last_report = 0.0
    self._warned_of_no_stage = False

  def after_create_session(self, session, coord):
    del session, coord
    if isinstance(self._writer, str):
      self._writer = writer_cache.FileWriterCache.get(self._writer)
    elif self._writer is None and tf_logging.get_verbosity() > tf_logging.INFO:
      tf_logging.warning(
          "tf.staging.StatsHook logs with the level INFO, which is not shown. To see its lines, call"
          " tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO).")
    self._warned_of_no_stage = False
    # Counters of the buffers of an earlier session do not continue.
    self._last = {}
    self._last_report = time.monotonic()
    self._last_steps = self._steps

  def after_run(self, run_context, run_values):
    self._steps += 1
    if self._every_n_steps is None:
      is_due = time.monotonic() - self._last_report >= self._every_n_secs
    else:
      is_due = self._steps - self._last_steps >= self._every_n_steps
    if is_due:
      self._report(run_context.session)

  def _report(self, session) -> None:
    now = time.monotonic()
    elapsed, self._last_report = now - self._last_report, now
    self._last_steps = self._steps
    stages = stage_stats.stats(session)
    if not stages and not self._warned_of_no_stage:
      self._warned_of_no_stage = True
      tf_logging.warning(
          "tf.staging.StatsHook has nothing to report, since the session has no stage. tf.staging.explain(graph,"
          " config) says what SmartStage would run ahead, and why not more.")
    for stage in stages:
      period = advice.Period.between(self._last.get(stage.name), stage, elapsed)
      self._last[stage.name] = stage
      tf_logging.info("%s", advice.line(stage, period))
      if self._writer is not None:
        self._write(session, stage, period)

  def _write(self, session, stage: stage_stats.StageStats, period: advice.Period) -> None:
    values = {
        "records": stage.records,
        "records_per_sec": period.records_per_second,
        "step_waits": period.step_waits,
        "producer_waits": period.producer_waits,
    }
    summary = summary_pb2.Summary(value=[
        summary_pb2.Summary.Value(tag=f"staging/{stage.name}/{name}", simple_value=value)
        for name, value in values.items()
    ])
    with session.graph.as_default():
      step = training_util.get_global_step()
    self._writer.add_summary(summary, self._steps if step is None else training_util.global_step(session, step))
