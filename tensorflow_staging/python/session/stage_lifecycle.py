# SPDX-License-Identifier: Apache-2.0
"""Starts and stops the stages of sessions, and keeps track of which stages run in which session."""

import atexit
import threading
import weakref
from collections.abc import Sequence

from tensorflow.python.client import session as session_lib
from tensorflow.python.training import coordinator

from tensorflow_staging.python.pywrap import _pywrap_staging
from tensorflow_staging.python.session import interrupts
from tensorflow_staging.python.session import runner_options
from tensorflow_staging.python.session import starting_session

_lock = threading.Lock()
# The running stages of each live session. Does not keep the session alive: the runners leave it by
# themselves when it closes.
_stages_of_session: "weakref.WeakKeyDictionary[session_lib.BaseSession, _Stages]" = (
    weakref.WeakKeyDictionary())  # Guarded by _lock.
# The number of nodes that the graph of a session had when its stages began to run.
_old_nodes: "weakref.WeakKeyDictionary[session_lib.BaseSession, int]" = (
    weakref.WeakKeyDictionary())  # Guarded by _lock.


def start(
    session: session_lib.BaseSession, coord: coordinator.Coordinator | None = None) -> None:
  """Starts every stage of the session's graph, unless they are running already.

  Args:
    session: The session to run the stages in.
    coord: If given, the stages stop when the coordinator is asked to stop, and `coord.join` waits
      until they have stopped.

  Raises:
    TypeError: If `session` is not a `tf.compat.v1.Session`, or `coord` is not a
      `tf.train.Coordinator`.
    tf.errors.OpError: If the session cannot run the stages, for example because it is closed.
  """
  if not isinstance(session, session_lib.BaseSession):
    raise TypeError(
        "session must be a tf.compat.v1.Session, got"
        f" {session!r} of type {type(session).__name__}.")
  if not isinstance(coord, coordinator.Coordinator | None):
    raise TypeError(
        f"coord must be None or a tf.train.Coordinator, got {coord!r} of type"
        f" {type(coord).__name__}.")
  with _lock:
    stages = _stages_of_session.get(session)
    if stages is None or not stages.running():
      if stages is not None:
        stages.stop()
      stages = _Stages(session, _old_nodes.get(session, 0))
      with starting_session.starting(session):
        stages.start()
      _stages_of_session[session] = stages
      if stages:
        _old_nodes.setdefault(session, stages.num_nodes)
  if stages:
    _interrupt_watch.begin()
  if coord is not None and stages:
    _stop_with(coord, stages)


def stop(session: session_lib.BaseSession) -> None:
  """Stops the stages of a session, if any run, and waits until their threads have left it.

  Waits only a few seconds for a thread that slow input blocks; that thread ends when the session
  closes.

  Args:
    session: Any session.
  """
  with _lock:
    stages = _stages_of_session.pop(session, None)
  if stages is not None:
    stages.stop()
  _interrupt_watch.end_if_not_needed()


class _Stages:
  """The runners of the stages of one session. Safe to use from several threads."""

  def __init__(self, session: session_lib.BaseSession, old_nodes: int):
    self.num_nodes = len(session.graph.get_operations())
    # Python's session passes new nodes to C++ only when it runs something, and the runners bypass
    # Python's session.
    session._extend_graph()
    self.runners = [
        _pywrap_staging.PrefetchRunner(session._session, options)
        for options in runner_options.of_session(session, old_nodes)
    ]

  def __len__(self) -> int:
    return len(self.runners)

  def start(self) -> None:
    """Starts all runners, or none: if one cannot start, stops those that have started."""
    try:
      for runner in self.runners:
        runner.start()
    except BaseException:
      self.stop()
      raise

  def running(self) -> bool:
    """Returns whether any runner may still produce records."""
    return any(runner.stats()["running"] for runner in self.runners)

  def stop(self) -> None:
    """Stops all runners and waits until they have left the session; a second call does nothing."""
    _stop_together(self.runners)


def _stop_together(runners: Sequence[_pywrap_staging.PrefetchRunner]) -> None:
  """Stops runners in parallel, because each may have to wait a few seconds for input that hangs."""
  threads = [
      threading.Thread(target=runner.stop, name="staging_stop_runner") for runner in runners[1:]
  ]
  for thread in threads:
    thread.start()
  for runner in runners[:1]:
    runner.stop()
  for thread in threads:
    thread.join()


def _stop_with(coord: coordinator.Coordinator, stages: _Stages) -> None:
  """Stops the stages as soon as the coordinator is asked to stop."""

  def wait_and_stop():
    coord.wait_for_stop()
    stages.stop()
    _interrupt_watch.end_if_not_needed()

  # A daemon thread lets a program exit that never stops its coordinator.
  thread = threading.Thread(target=wait_and_stop, name="staging_stop", daemon=True)
  coord.register_thread(thread)
  thread.start()


def _any_running() -> bool:
  """Returns whether the stages of any session are running, so that a step may wait for them."""
  with _lock:
    return any(stages.running() for stages in _stages_of_session.values())


def _stop_all() -> None:
  """Stops the stages of every session; each session can start its stages again."""
  with _lock:
    everything = list(_stages_of_session.values())
  _stop_together([runner for stages in everything for runner in stages.runners])


_interrupt_watch = interrupts.InterruptWatch(needed=_any_running, stop=_stop_all)


@atexit.register
def _end() -> None:
  """Ends all stages before the interpreter can no longer run the Python functions of their graphs."""
  with _lock:
    everything = list(_stages_of_session.values())
    _stages_of_session.clear()
  _stop_together([runner for stages in everything for runner in stages.runners])
  _interrupt_watch.end_if_not_needed()
