# SPDX-License-Identifier: Apache-2.0
"""Which stages run in which session: the one place that starts and stops them."""

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
# The running stages of each live session. The session is not kept alive: the runners leave it by
# themselves when it closes.
_stages_of_session: "weakref.WeakKeyDictionary[session_lib.BaseSession, _Stages]" = (
    weakref.WeakKeyDictionary())  # Guarded by _lock.
# How many nodes the graph of a session had when its stages began to run.
_old_nodes: "weakref.WeakKeyDictionary[session_lib.BaseSession, int]" = (
    weakref.WeakKeyDictionary())  # Guarded by _lock.


def start(
    session: session_lib.BaseSession, coord: coordinator.Coordinator | None = None) -> None:
  """Starts every stage of the session's graph, unless they are running already.

  Args:
    session: The session to run them in.
    coord: If given, the stages stop when it is asked to stop, and `coord.join` waits for that.

  Raises:
    TypeError: If `session` is no `tf.compat.v1.Session`, or `coord` no `tf.train.Coordinator`.
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
        _old_nodes.setdefault(session, stages.nodes)
  if stages:
    _interrupt_watch.begin()
  if coord is not None and stages:
    _stop_with(coord, stages)


def stop(session: session_lib.BaseSession) -> None:
  """Stops the stages of a session; returns when their threads have left it.

  Args:
    session: Any session. Where nothing runs, or nothing runs any more, nothing happens.
  """
  with _lock:
    stages = _stages_of_session.pop(session, None)
  if stages is not None:
    stages.stop()
  _interrupt_watch.end_if_not_needed()


class _Stages:
  """The runners of one session; safe to use from several threads."""

  def __init__(self, session: session_lib.BaseSession, old_nodes: int):
    self.nodes = len(session.graph.get_operations())
    # The session learns of new nodes only when it runs something, and the runners do not go
    # through its Python side.
    session._extend_graph()
    self.runners = [
        _pywrap_staging.PrefetchRunner(session._session, options)
        for options in runner_options.of_session(session, old_nodes)
    ]

  def __len__(self) -> int:
    return len(self.runners)

  def start(self) -> None:
    """Starts all runners, or none: if one cannot start, those before it are stopped."""
    try:
      for runner in self.runners:
        runner.start()
    except BaseException:
      self.stop()
      raise

  def running(self) -> bool:
    """Whether any runner still produces records."""
    return any(runner.stats()["running"] for runner in self.runners)

  def stop(self) -> None:
    """Stops all runners and waits until they have left; does nothing the second time."""
    _stop_together(self.runners)


def _stop_together(runners: Sequence[_pywrap_staging.PrefetchRunner]) -> None:
  """Stops runners at the same time: each may have to wait some seconds for input that hangs."""
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

  # A daemon: a program that never stops its coordinator can still end.
  thread = threading.Thread(target=wait_and_stop, name="staging_stop", daemon=True)
  coord.register_thread(thread)
  thread.start()


def _any_running() -> bool:
  """Whether a step of any session may be waiting for a stage."""
  with _lock:
    return any(stages.running() for stages in _stages_of_session.values())


def _stop_all() -> None:
  """Stops the stages of every session; the sessions can start them again."""
  with _lock:
    everything = list(_stages_of_session.values())
  _stop_together([runner for stages in everything for runner in stages.runners])


_interrupt_watch = interrupts.InterruptWatch(needed=_any_running, stop=_stop_all)


@atexit.register
def _end() -> None:
  """Ends all stages while the interpreter can still run the Python functions of their graphs."""
  with _lock:
    everything = list(_stages_of_session.values())
    _stages_of_session.clear()
  _stop_together([runner for stages in everything for runner in stages.runners])
  _interrupt_watch.end_if_not_needed()
