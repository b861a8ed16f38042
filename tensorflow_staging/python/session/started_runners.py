# SPDX-License-Identifier: Apache-2.0
"""The runners that one start of a session's stages creates."""

import contextlib
import functools
import threading
import time
import weakref
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import Optional

from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import errors
from tensorflow.python.platform import tf_logging
from tensorflow.python.training import coordinator

from tensorflow_staging.python.pywrap import _pywrap_staging
from tensorflow_staging.python.session import busy_cores
from tensorflow_staging.python.session import needed_runners
from tensorflow_staging.python.session import stage_chains
from tensorflow_staging.python.stages import feed_generator
from tensorflow_staging.python.stats import stage_counts

# How long to wait for runners that stop. A runner waits up to a second for those of the stages that take its records,
# and up to 1.5 seconds for a run that cannot be cancelled; only a server that does not answer takes longer.
# tf.train.Coordinator.join looks at its threads after 2 and then after 4 seconds, and is to return within 5.
_STOP_PATIENCE_SECONDS = 3
_CHAIN_PATIENCE_SECONDS = 1
# How long a stop waits for the last statistics. In a local session they take about 0.1 ms.
_READ_PATIENCE_SECONDS = 0.3


class _RunnerStop:
  """The stop of a runner, in a thread of its own; if the process can start no thread, in those that wait for it."""

  def __init__(self, runner: _pywrap_staging.PrefetchRunner, read: Callable[[], Optional[stage_counts.StageCounts]]):
    """Creates a stop that has not begun.

    Args:
      runner: The runner.
      read: Reads what has been counted of its stage, if the stage still runs. May wait for the session's server.
    """
    self._runner = runner
    self._read = read
    # What `read` has returned before the runner stopped.
    self.counts: Optional[stage_counts.StageCounts] = None
    self._thread: Optional[threading.Thread] = None
    self._ended = threading.Event()
    self.stage = runner.stats()["name"]

  def begin(self, later: Sequence["_RunnerStop"]) -> None:
    """Begins to stop the runner, unless that has begun. If two callers begin at once, one of them changes nothing.

    A run of a later stage may have taken one record and wait for another that belongs to it. If it did not get
    that, the first one would be lost, and the next run would take records that do not belong together.

    Args:
      later: The stops of the stages that take records of this one. They go first, but have a second at most.
    """
    if self._thread is not None:
      return
    # Daemon threads let the program exit while the server does not answer.
    thread = threading.Thread(target=self._stop, args=[later], name="staging_stop_runner", daemon=True)
    with contextlib.suppress(RuntimeError):  # The process can start no thread.
      thread.start()
      self._thread = thread

  def _stop(self, later: Sequence["_RunnerStop"]) -> None:
    self._read_counts()
    deadline = time.monotonic() + _CHAIN_PATIENCE_SECONDS
    for stop in later:
      stop._ended.wait(max(0, deadline - time.monotonic()))
    try:
      self._runner.stop()
    finally:
      self._ended.set()

  def _read_counts(self) -> None:
    """Reads what the stage has counted, which a runner that has stopped cannot do. Waits only a moment."""

    def read():
      # The session may be closed, or its server lost. The stop must go on.
      with contextlib.suppress(errors.OpError, RuntimeError):
        self.counts = self._read()

    reader = threading.Thread(target=read, name="staging_last_stats", daemon=True)
    with contextlib.suppress(RuntimeError):  # The process can start no thread.
      reader.start()
      reader.join(_READ_PATIENCE_SECONDS)

  def wait(self, seconds: Optional[float] = None) -> None:
    """Waits until the runner has stopped, at most for a time; without a thread, however long that takes."""
    if self._thread is not None:
      self._thread.join(seconds)
    else:
      self._stop([])

  def has_ended(self) -> bool:
    return self._ended.is_set()


class StartedRunners:
  """Starts its runners once and stops them once. Safe to use from several threads.

  A thread may stop the runners while another one starts them and waits for a server that does not answer.

  There is no lock. A signal handler that closes the session waits for threads that stop the runners, and may interrupt
  the main thread anywhere. What it interrupts is therefore one operation of Python, which is indivisible, or may be
  done twice.
  """

  def __init__(self):
    # When the runners started, and what had been counted of their buffers before. Set by the thread that starts them.
    self._began: Optional[busy_cores.CoreTimes] = None
    self._earlier: dict[str, dict[str, Any]] = {}
    # Only the thread that starts the runners adds to them.
    self._runners: list[_pywrap_staging.PrefetchRunner] = []
    self._asked_to_stop = False
    # Empty until the runners begin to stop. The first entry counts: a stop for each runner.
    self._stopping: list[list[_RunnerStop]] = []
    self._started = False
    # For the name of a stage, those of the stages whose records it takes.
    self._stages_before: dict[str, set[str]] = {}
    # Their stop ends the runners. The values tell apart who has noted them.
    self._coordinators: weakref.WeakKeyDictionary[coordinator.Coordinator, object] = weakref.WeakKeyDictionary()

  def __len__(self) -> int:
    return len(self._runners)

  def start(self, session: session_lib.BaseSession, earlier: Iterable[stage_counts.StageCounts] = ()) -> None:
    """Starts all runners, or none: if one cannot start, stops those that have started.

    Args:
      session: The session to run the stages in.
      earlier: What had been counted of the stages that ran last in the session.

    Raises:
      tf.errors.CancelledError: If the runners are asked to stop before all of them have started.
      tf.errors.OpError: If the session cannot run the stages, for example because it is closed.
    """
    self._began = busy_cores.now()
    self._earlier = {counts.runner["name"]: counts.buffer for counts in earlier}
    try:
      # Python's session passes new nodes to C++ only when it runs something, and the runners bypass
      # Python's session.
      session._extend_graph()
      self._raise_if_asked_to_stop()
      for options in needed_runners.of_session(session):
        feed_generator.open_data(session, options)
        self._add(_pywrap_staging.PrefetchRunner(session._session, options))
      for runner in self._runners:
        runner.start()
      # The stages run meanwhile.
      stages_before = stage_chains.stages_before(session)
      self._raise_if_asked_to_stop()
      self._stages_before = stages_before
      self._started = True
    except BaseException:
      stop_together([self])
      raise

  def add_coordinator(self, coord: coordinator.Coordinator) -> bool:
    """Notes a coordinator that will end the runners when it stops. Returns whether it is new to them."""
    mine = object()
    return self._coordinators.setdefault(coord, mine) is mine

  def coordinators(self) -> list[coordinator.Coordinator]:
    """Returns the coordinators that will end the runners."""
    coordinators = [reference() for reference in self._coordinators.keyrefs()]
    return [coord for coord in coordinators if coord is not None]

  def started(self) -> bool:
    """Returns whether all runners have been started, even if they have stopped since."""
    return self._started

  def ask_to_stop(self) -> None:
    """Notes that somebody is about to stop the runners. Never waits."""
    self._asked_to_stop = True

  def asked_to_stop(self) -> bool:
    """Returns whether the runners stop, or somebody is about to stop them."""
    return self._asked_to_stop

  def running(self) -> bool:
    """Returns whether the runners are not to stop, and any may still produce records. Never waits."""
    return not self._asked_to_stop and any(runner.stats()["running"] for runner in self._runners)

  def stats(self) -> list[stage_counts.StageCounts]:
    """Returns what has been counted of each stage that runs.

    Waits for the session's server.

    Raises:
      tf.errors.OpError: If the statistics of a stage that is running cannot be read.
    """
    if self._asked_to_stop:
      return []
    stats = []
    for runner in list(self._runners):
      # A runner that another thread is still starting, or whose session is closed, does not run.
      with contextlib.suppress(errors.FailedPreconditionError):
        stats.append(self._counts_of(runner))
    return stats

  def last_stats(self) -> list[stage_counts.StageCounts]:
    """Returns what had been counted of each stage when the runners stopped, if the session could say."""
    return [stop.counts for stops in self._stopping[:1] for stop in stops if stop.counts is not None]

  def stopped(self) -> bool:
    """Returns whether all runners have stopped because they were asked to."""
    return bool(self._stopping) and all(stop.has_ended() for stop in self._stopping[0])

  def await_stopped(self) -> None:
    """Asks the runners to stop and waits until they have, however long their server takes to answer."""
    for stop in self._begin_to_stop():
      stop.wait()

  def _counts_of(self, runner: _pywrap_staging.PrefetchRunner) -> stage_counts.StageCounts:
    counted = runner.stats()
    cores = busy_cores.now()
    return stage_counts.StageCounts(
        counted, runner.buffer_stats(), self._earlier.get(counted["name"]),
        busy_cores.busy(self._began, cores), busy_cores.own(self._began, cores))

  def _add(self, runner: _pywrap_staging.PrefetchRunner) -> None:
    # In this order: whoever asks for the stop after the check finds the runner.
    self._runners.append(runner)
    self._raise_if_asked_to_stop()

  def _raise_if_asked_to_stop(self) -> None:
    if self._asked_to_stop:
      raise errors.CancelledError(None, None, "The stages were stopped before they had started.")

  def _begin_to_stop(self) -> list[_RunnerStop]:
    """Begins to stop each runner; a second call does not stop them again."""
    self._asked_to_stop = True
    if not self._stopping:
      self._stopping.append([
          _RunnerStop(runner, functools.partial(self._counts_of, runner)) for runner in list(self._runners)
      ])
    stopping = self._stopping[0]
    for stop in stopping:
      stop.begin([other for other in stopping if stop.stage in self._stages_before.get(other.stage, ())])
    return stopping


def stop_together(everything: Iterable[StartedRunners]) -> None:
  """Stops runners in parallel, and waits until they have left their sessions.

  Waits only a few seconds for runs that cannot be cancelled and for servers that do not answer.

  Args:
    everything: The runners to stop. Those that have stopped already make no difference.
  """
  deadline = time.monotonic() + _STOP_PATIENCE_SECONDS
  stopping = [stop for runners in everything for stop in runners._begin_to_stop()]
  late = []
  for stop in stopping:
    stop.wait(max(0, deadline - time.monotonic()))
    if not stop.has_ended():
      late.append(stop.stage)
  if late:
    tf_logging.warning(
        "Stages %r have not stopped after %d seconds: the server of their session does not answer. They"
        " stop as soon as it does.", late, _STOP_PATIENCE_SECONDS)
