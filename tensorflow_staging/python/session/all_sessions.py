# SPDX-License-Identifier: Apache-2.0
"""Knows the stages of all sessions: starts and stops them, and keeps track of which run in which session."""

import atexit
import ctypes
import os
import sys
import threading
import types
import weakref
from typing import Optional

from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import errors
from tensorflow.python.training import coordinator

from tensorflow_staging.python import api_name
from tensorflow_staging.python.session import closed_sessions
from tensorflow_staging.python.session import coordinator_stop
from tensorflow_staging.python.session import interrupts
from tensorflow_staging.python.session import session_stages
from tensorflow_staging.python.session import started_runners
from tensorflow_staging.python.stats import stage_counts

# Does not keep a session alive: the runners leave it by themselves when it closes. There is no lock, which a signal
# handler might find the main thread holding: a look-up, `setdefault` and `keyrefs` are indivisible.
_stages_of_session: "weakref.WeakKeyDictionary[session_lib.BaseSession, session_stages.SessionStages]" = (
    weakref.WeakKeyDictionary())
_managed: "weakref.WeakSet[session_lib.BaseSession]" = weakref.WeakSet()


def start(
    session: session_lib.BaseSession, coord: Optional[coordinator.Coordinator] = None) -> None:
  """Starts every stage of the session's graph, unless they are running already.

  Waits for the session's server as long as it takes to answer, and for another thread that is starting the
  stages.

  Args:
    session: The session to run the stages in.
    coord: If given, the stages stop when the coordinator is asked to stop, and `coord.join` waits
      until they have stopped.

  Raises:
    TypeError: If `session` is not a `tf.compat.v1.Session`, or `coord` is not a
      `tf.train.Coordinator`.
    tf.errors.CancelledError: If another thread stops the stages before they have started.
    tf.errors.OpError: If the session cannot run the stages, for example because it is closed.
  """
  stages = _stages_of(session)
  if api_name.IS_PLUGIN and session.sess_str:
    raise errors.UnimplementedError(
        None, None, f"The session is one of the server {session.sess_str!r}. Beside an official TensorFlow, only local"
        " sessions have stages.")
  if not isinstance(coord, (coordinator.Coordinator, type(None))):
    raise TypeError(
        f"coord must be None or a tf.train.Coordinator, got {coord!r} of type"
        f" {type(coord).__name__}.")
  runners = stages.start(session)
  if not runners:
    return
  if api_name.IS_PLUGIN:
    closed_sessions.watch(session, stop)
  _interrupt_watch.begin()
  if coord is not None and runners.add_coordinator(coord):
    _stop_with(coord, session, runners)


def stats(session: session_lib.BaseSession) -> list[stage_counts.StageCounts]:
  """Returns what has been counted of each stage of a session.

  Args:
    session: The session. If its stages are not running, the list is empty.

  Raises:
    tf.errors.OpError: If the session cannot run, for example because its server was lost.
  """
  stages = _stages_of_session.get(session)
  runners = stages.latest() if stages is not None else None
  return runners.stats() if runners is not None else []


def ended(session: session_lib.BaseSession) -> Optional[list[stage_counts.StageCounts]]:
  """Returns what had been counted of the stages that ran last in a session, when they stopped.

  Args:
    session: Any session.

  Returns:
    An entry for each stage that could still say it; None if no stages have stopped, which includes those that run.
  """
  stages = _stages_of_session.get(session)
  return stages.ended() if stages is not None and stages.latest() is None else None


def has_started(session: session_lib.BaseSession) -> bool:
  """Returns whether the stages of a session have been started and not stopped since, even if there is none."""
  stages = _stages_of_session.get(session)
  runners = stages.latest() if stages is not None else None
  return runners is not None and runners.started()


def note_managed(session: session_lib.BaseSession) -> None:
  """Notes that no hook of the program starts the stages of a session, but its first run that needs a record."""
  _managed.add(session)


def is_managed(session: session_lib.BaseSession) -> bool:
  """Returns whether the first run that needs a record starts the stages of a session."""
  return session in _managed


def end(session: session_lib.BaseSession) -> bool:
  """Stops the stages of a session as `stop` does, in a program that is about to stop its coordinator.

  Args:
    session: Any session.

  Returns:
    Whether stages had run and have stopped.
  """
  stages = _stages_of_session.get(session)
  runners = stages.latest() if stages is not None else None
  if runners is not None:
    for coord in runners.coordinators():
      coordinator_stop.expect_cancelled_runs(coord)
  stop(session)
  return runners is not None and runners.stopped()


def stop(session: session_lib.BaseSession) -> None:
  """Stops the stages of a session, if any run, and waits until their threads have left it.

  Waits only a few seconds for a thread that slow input blocks; that thread ends when the session
  closes. Waits no longer for a server that does not answer, and not at all for another thread that is
  starting the stages: that thread starts nothing more, and gets `tf.errors.CancelledError` as soon as the
  server answers.

  Args:
    session: Any session.
  """
  stages = _stages_of_session.get(session)
  if stages is not None:
    session_stages.stop_together([stages])
  _interrupt_watch.end_if_not_needed()


def enter_block(session: session_lib.BaseSession) -> None:
  """Notes that a block of the program runs the stages of a session.

  Args:
    session: The session.

  Raises:
    TypeError: If `session` is not a `tf.compat.v1.Session`.
  """
  _stages_of(session).enter_block()


def leave_block(session: session_lib.BaseSession) -> bool:
  """Notes that a block has ended, and stops the stages as `stop` does if it was the last one of the session.

  Args:
    session: The session.

  Returns:
    Whether stages had run and have stopped.
  """
  stages = _stages_of(session)
  runners = stages.latest()
  stages.leave_block()
  _interrupt_watch.end_if_not_needed()
  return runners is not None and runners.stopped()


def _stages_of(session: session_lib.BaseSession) -> session_stages.SessionStages:
  if not isinstance(session, session_lib.BaseSession):
    raise TypeError(
        "session must be a tf.compat.v1.Session, got"
        f" {session!r} of type {type(session).__name__}.")
  return _stages_of_session.setdefault(session, session_stages.SessionStages())


def _stop_with(
    coord: coordinator.Coordinator, session: session_lib.BaseSession, runners: started_runners.StartedRunners) -> None:
  """Stops the runners of a session as soon as the coordinator is asked to stop."""
  reference = weakref.ref(session)

  def stop_runners():
    started_runners.stop_together([runners])
    _interrupt_watch.end_if_not_needed()

  coordinator_stop.call_at_stop(
      coord, stop_runners, "staging_stop", lambda: reference() is None or runners.stopped())


def _of_all_sessions() -> list[session_stages.SessionStages]:
  sessions = [reference() for reference in _stages_of_session.keyrefs()]
  return [_stages_of_session[session] for session in sessions if session is not None]


def _any_running() -> bool:
  """Returns whether the stages of any session are running, so that a step may wait for them. Never waits."""
  return any(stages.running() for stages in _of_all_sessions())


def _stop_all() -> None:
  """Stops the stages of every session; each session can start its stages again."""
  session_stages.stop_together(_of_all_sessions())


def _code_of_program() -> list[types.CodeType]:
  """Returns the code that the main thread is executing."""
  frame = sys._current_frames().get(threading.main_thread().ident)
  code = []
  while frame is not None:
    code.append(frame.f_code)
    frame = frame.f_back
  return code


# Keeps the main module's code alive at the exit, where _end interrupts steps in other threads. Their errors show where
# an op was created, and TensorFlow's StackTrace owns no reference to that code if the stack had up to 16 frames:
# Capture() moves its absl::InlinedVector, and destroys the source, which releases the same references. Without this,
# the interpreter frees the code before it calls _end, and the process crashes.
_PROGRAM = _code_of_program()

_interrupt_watch = interrupts.InterruptWatch(needed=_any_running, stop=_stop_all)


def _abandon_sessions() -> None:
  """In a forked child process, closes the sessions that have stages, without a call of any of them.

  The child has none of the threads of the stages. Whatever waits for one of them would wait for ever or crash, also
  the destructor of a session or of a runner, so the child does not destroy what it has copied from its parent.
  """
  global _stages_of_session
  abandoned, _stages_of_session = dict(_stages_of_session), weakref.WeakKeyDictionary()
  for session, stages in abandoned.items():
    for owner in (session._session, stages):
      ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    session._session = None
    session._closed = True


os.register_at_fork(after_in_child=_abandon_sessions)


@atexit.register
def _end() -> None:
  """Ends all stages before the interpreter can no longer run the Python functions of their graphs.

  Waits only a few seconds for a server that does not answer, and not at all for a start in progress: a thread
  that waits for a server calls no Python function until the server answers.
  """
  _stop_all()
  _interrupt_watch.end_if_not_needed()
