# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.StatsHook`: logs what the stages of a session do, and what to change."""

import numbers
import os
from typing import Any
from typing import Optional

from tensorflow.python.client import session as session_lib
from tensorflow.python.platform import tf_logging
from tensorflow.python.summary.writer import writer_cache
from tensorflow.python.training import coordinator
from tensorflow.python.training import session_run_hook
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python.session import coordinator_stop
from tensorflow_staging.python.session import step_hooks
from tensorflow_staging.python.stats import report_thread
from tensorflow_staging.python.stats import stage_reports

_DEFAULT_SECS = 10


@tf_export("staging.StatsHook")
class StatsHook(step_hooks.IdleHook):
  """Logs what each stage of the session has done since the last time, and what to change.

  A line says what the stage gained, how long steps have waited for records, for how long the stage was ahead of them,
  and in plain words what to do next:

  ```
  Stage 'prefetch': 41.2 records/s, 1 of 1 in the buffer (0.3 MiB). It hid about 14.9 of 38.9 ms a step. Steps waited
  for records 38% of the time; the stage was ahead of them, with nothing to do, 0% of the time: the stage is slower than
  the step; raise num_threads (now 1), or let the stage choose with tf.data.AUTOTUNE, if records may come in another
  order. If what it reads is the limit, only a quicker source helps.
  ```

  When a stage ends, `tf.make_prefetch_hook()` logs what it has gained in all, with or without this hook. While
  TensorFlow's profiler runs, the lines are events of its trace, too.

  The lines have the level INFO, which TensorFlow shows after
  `tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)`. If they are not shown and there is no
  `summary_writer`, or if no stage runs in the session, the hook warns once a session.

  By default, a thread reports at regular times until the hook ends or the session closes, also while a step waits for
  its record, and the session does not call the hook in steps. With `every_n_steps`, the session calls the hook after
  each step, and waits for its reports. The time since the last report has no line of its own.

  One hook may serve several sessions, one after the other.

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
      every_n_steps: Report after every that many steps. An error of the report is an error of the step.
      every_n_secs: Report whenever that many seconds have passed, in a thread. If the session cannot say what its
        stages do, for example because its server was lost, the thread tries again the next time. If neither this nor
        `every_n_steps` is given, this is 10.
      summary_writer: A `tf.compat.v1.summary.FileWriter`, or the folder of one, to which the hook also
        writes for TensorBoard, below `staging/NAME/`: the scalars `records` (in the buffer), `records_per_sec`,
        `step_waits` and `producer_waits` (as a part of the time), `capacity`, `producers`, and in milliseconds
        `step_ms`, `region_ms` (to make a record) and `hidden_ms` (of each step, by the stage); and at the end the text
        `verdict`. Their step is the global step, or, if the graph has none, the number of records that steps have
        taken. None writes none.

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
      if value is not None and not value > 0:
        raise ValueError(f"{name} must be positive, got {value!r}.")
    if isinstance(summary_writer, os.PathLike):
      summary_writer = os.fspath(summary_writer)
    if not (summary_writer is None or isinstance(summary_writer, str) or hasattr(summary_writer, "add_summary")):
      raise TypeError(
          "summary_writer must be None, a folder or a tf.compat.v1.summary.FileWriter, got"
          f" {summary_writer!r} of type {type(summary_writer).__name__}.")
    self._every_n_steps = every_n_steps
    self._every_n_secs = float(_DEFAULT_SECS if every_n_secs is None else every_n_secs)
    self._writer = summary_writer
    # The reports on the latest session: those that steps make, or the thread that makes them.
    self._reports: Optional[stage_reports.StageReports] = None
    self._thread: Optional[report_thread.ReportThread] = None
    # How many steps there were since the last report.
    self._steps = 0
    if every_n_steps is None and type(self).after_run is StatsHook.after_run:
      # A subclass may call this class's method, but the session need not.
      self.after_run = super().after_run

  def after_create_session(
      self, session: session_lib.BaseSession, coord: Optional[coordinator.Coordinator] = None) -> None:
    """Begins to report on a session. Monitored sessions and Estimators call this method.

    Args:
      session: The session.
      coord: If given, the reports end when the coordinator is asked to stop.
    """
    self._stop_thread()  # A monitored session does not end a hook before it replaces a lost session.
    self._warn_if_lines_are_hidden()
    if isinstance(self._writer, str):
      self._writer = writer_cache.FileWriterCache.get(self._writer)
    reports = stage_reports.StageReports(self._writer)
    if self._every_n_steps is not None:
      self._reports, self._steps = reports, 0
      return
    self._thread = report_thread.ReportThread(session, reports, self._every_n_secs)
    self._thread.start()
    if coord is not None:
      thread = self._thread
      coordinator_stop.call_at_stop(coord, thread.stop, "staging_stop_stats", lambda: not thread.is_alive())

  def after_run(
      self, run_context: session_run_hook.SessionRunContext, run_values: session_run_hook.SessionRunValues) -> None:
    """Reports if the hook counts steps and this was the last of `every_n_steps`."""
    del run_values
    if self._every_n_steps is None:
      return
    self._steps += 1
    if self._steps >= self._every_n_steps:
      self._steps = 0
      self._reports.publish(self._reports.read(run_context.session))

  def end(self, session: Optional[session_lib.BaseSession]) -> None:
    """Ends the reports, without waiting for one that is in progress.

    With a `summary_writer`, also writes what each stage has done and gained in all, if the stages have ended: their
    hook comes before this one.

    Args:
      session: The session, or None if it no longer exists.
    """
    self._stop_thread()
    if session is not None and self._writer is not None:
      stage_reports.StageReports(self._writer).publish_end(session)

  def _stop_thread(self) -> None:
    thread, self._thread = self._thread, None
    if thread is not None:
      thread.stop()

  def _warn_if_lines_are_hidden(self) -> None:
    if self._writer is None and tf_logging.get_verbosity() > tf_logging.INFO:
      tf_logging.warning(
          "tf.staging.StatsHook logs with the level INFO, which is not shown. To see its lines, call"
          " tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO).")
