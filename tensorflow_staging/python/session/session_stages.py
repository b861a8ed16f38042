# SPDX-License-Identifier: Apache-2.0
"""Starts and stops the stages of one session, whichever threads ask for it."""

import threading
from collections.abc import Iterable
from typing import Optional

from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import errors

from tensorflow_staging.python.session import started_runners
from tensorflow_staging.python.stats import stage_counts


class SessionStages:
  """The stages of one session, which it does not keep alive. Safe to use from several threads.

  One thread at a time starts the stages. Threads that want to start them as well wait for it and share its
  success: if two of them sent the graph, TensorFlow would let the second one wait with the lock of the graph,
  and all other sessions of that graph with it. Nothing else waits for a start, which takes for ever if the
  server of the session does not answer. The lock is therefore never held while the session is called.

  What only reads takes no lock: a signal handler that interrupts the main thread while that holds the lock may wait for
  the thread that reads.
  """

  def __init__(self):
    # Reentrant, because a signal handler may stop the stages while the main thread holds the lock.
    self._changed = threading.Condition(threading.RLock())
    # The runners that a thread is starting now.
    self._starting: Optional[started_runners.StartedRunners] = None  # Guarded by _changed.
    # The runners that use the stages' buffers: those of the latest start, until they have stopped.
    self._latest: Optional[started_runners.StartedRunners] = None  # Changes are guarded by _changed.
    # How often the stages were asked to stop. A change cancels the starts that are in progress.
    self._stops = 0  # Guarded by _changed.
    # What had been counted of the stages that ran last, when they stopped; None if none has stopped.
    self._ended: Optional[list[stage_counts.StageCounts]] = None  # Changes are guarded by _changed.
    # The blocks of the program that run the stages, nested or in several threads.
    self._blocks = 0  # Guarded by _changed.

  def start(self, session: session_lib.BaseSession) -> started_runners.StartedRunners:
    """Starts the stages, unless they are running already.

    Args:
      session: The session. Each call has to pass the same one.

    Returns:
      The runners of the stages.

    Raises:
      tf.errors.CancelledError: If the stages are stopped before they have started.
      tf.errors.OpError: If the session cannot run the stages, for example because it is closed.
    """
    runners = started_runners.StartedRunners()
    try:
      others = self._take_turn(runners)
      if others is not None:
        return others
      self._start(session, runners)
      return runners
    finally:
      self._end_turn(runners)

  def enter_block(self) -> None:
    """Notes that a block of the program begins to use the stages."""
    with self._changed:
      self._blocks += 1

  def leave_block(self) -> None:
    """Notes the end of a block, and stops the stages as `stop_together` does if no other block uses them."""
    with self._changed:
      # A forked child has forgotten the blocks that its parent had entered.
      self._blocks = max(0, self._blocks - 1)
      # In the same step, so that a block that begins from now on starts the stages anew.
      last = self._ask_to_stop() if self._blocks == 0 else set()
    _stop([self], last)

  def latest(self) -> Optional[started_runners.StartedRunners]:
    """Returns the runners of the latest start, unless they have stopped."""
    return self._latest

  def ended(self) -> Optional[list[stage_counts.StageCounts]]:
    """Returns what had been counted of the stages that ran last, when they stopped; None if none has stopped."""
    return self._ended

  def running(self) -> bool:
    """Returns whether any stage may still produce records. Never waits."""
    latest = self._latest
    return latest is not None and latest.running()

  def _take_turn(self, runners: started_runners.StartedRunners) -> Optional[started_runners.StartedRunners]:
    """Waits until no other thread is starting the stages.

    Args:
      runners: The runners of the calling thread, which it may start if this returns None.

    Returns:
      The runners of another thread if they run, or if this has waited for them to start; otherwise None.
    """
    with self._changed:
      stops = self._stops
      while (awaited := self._starting) is not None:
        while self._starting is awaited:
          self._changed.wait()
          if self._stops != stops:
            raise errors.CancelledError(None, None, "The stages were stopped before they had started.")
        # The stages may have come to the end of the data since. That is no reason to start them twice.
        if awaited.started() and not awaited.asked_to_stop():
          return awaited
      if self._latest is not None and self._latest.running():
        return self._latest
      self._starting = runners
      return None

  def _start(self, session: session_lib.BaseSession, runners: started_runners.StartedRunners) -> None:
    with self._changed:
      previous = self._latest
    if previous is not None:
      # If the previous runners cancelled the buffer later, they would wake those who wait in it now.
      previous.await_stopped()
    with self._changed:
      if previous is not None and self._latest is previous:
        self._ended = previous.last_stats()
      self._latest = runners
      earlier = self._ended or ()
    runners.start(session, earlier)

  def _end_turn(self, runners: started_runners.StartedRunners) -> None:
    with self._changed:
      if self._starting is runners:
        self._starting = None
        self._changed.notify_all()
    self._forget_stopped()

  def _ask_to_stop(self) -> set[started_runners.StartedRunners]:
    """Cancels the starts that are in progress, and returns the runners to stop."""
    with self._changed:
      self._stops += 1
      self._changed.notify_all()
      asked = {self._starting, self._latest} - {None}
      for runners in asked:
        runners.ask_to_stop()
      return asked

  def _forget_stopped(self) -> None:
    with self._changed:
      latest = self._latest  # Destroyed without the lock.
      if latest is not None and latest.stopped():
        ended = latest.last_stats()
        # A signal handler may have started the stages again meanwhile.
        if self._latest is latest:
          self._ended, self._latest = ended, None


def stop_together(sessions: Iterable[SessionStages]) -> None:
  """Stops the stages of several sessions in parallel, and waits until their threads have left the sessions.

  Waits only a few seconds for runs that cannot be cancelled and for servers that do not answer, and not at all
  for a start that is in progress: that start begins nothing more and raises `tf.errors.CancelledError` as soon
  as its server answers.

  Args:
    sessions: The stages to stop. Each session can start its stages again.
  """
  sessions = list(sessions)
  _stop(sessions, [runners for stages in sessions for runners in stages._ask_to_stop()])


def _stop(sessions: Iterable[SessionStages], asked: Iterable[started_runners.StartedRunners]) -> None:
  """Stops runners that were asked to stop; their sessions forget those that have stopped in time."""
  started_runners.stop_together(asked)
  for stages in sessions:
    stages._forget_stopped()
