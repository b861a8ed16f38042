# SPDX-License-Identifier: Apache-2.0
"""The thread of `tf.staging.StatsHook` that reports on the stages of a session while it runs."""

import atexit
import queue
import threading
import time
import weakref

from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import errors
from tensorflow.python.platform import tf_logging

from tensorflow_staging.python.stats import stage_reports

# How long the end of the program waits for a report in progress.
_EXIT_PATIENCE_SECONDS = 1


class ReportThread(threading.Thread):
  """Reports on the stages of a session at regular times, until it is stopped or the session is closed.

  It keeps neither the session nor the program alive, and no one waits for it: a report may wait for a server that
  does not answer.
  """

  def __init__(self, session: session_lib.BaseSession, reports: stage_reports.StageReports, seconds: float):
    """Creates the thread without starting it.

    Args:
      session: The session.
      reports: The reports on it, which from now on belong to this thread.
      seconds: How long to wait before each report.
    """
    super().__init__(name="staging_stats", daemon=True)
    self._session = weakref.ref(session)
    self._reports = reports
    self._seconds = min(seconds, threading.TIMEOUT_MAX)
    # An entry ends the thread. Unlike an event, it can be put in a signal handler and in a forked child, whatever
    # the thread was doing.
    self._stops: queue.SimpleQueue[None] = queue.SimpleQueue()

  def stop(self) -> None:
    """Ends the thread as soon as possible. Never waits for it."""
    self._stops.put(None)

  def run(self) -> None:
    try:
      while not self._told_to_stop(within=self._seconds) and self._report():
        pass
    except Exception as error:
      tf_logging.warning("tf.staging.StatsHook reports no more on this session: %r", error)

  def _report(self) -> bool:
    """Reports; returns whether the session is still open."""
    session = self._session()
    if session is None or session._closed:
      return False
    try:
      reports = self._reports.read(session)
    except errors.UnimplementedError:
      raise
    except (errors.OpError, RuntimeError):
      # The session was closed meanwhile, or its server was lost. The steps say so; it may come back.
      return True
    if not self._told_to_stop(within=0):
      self._reports.publish(reports)
    return True

  def _told_to_stop(self, within: float) -> bool:
    try:
      self._stops.get(timeout=within)
    except queue.Empty:
      return False
    # For the next call.
    self.stop()
    return True


@atexit.register
def _end() -> None:
  """Ends the threads: one that still logs while the interpreter ends could crash it.

  Waits only for reports in progress, and only a moment if their server does not answer.
  """
  threads = [thread for thread in threading.enumerate() if isinstance(thread, ReportThread)]
  for thread in threads:
    thread.stop()
  deadline = time.monotonic() + _EXIT_PATIENCE_SECONDS
  for thread in threads:
    thread.join(max(0, deadline - time.monotonic()))
