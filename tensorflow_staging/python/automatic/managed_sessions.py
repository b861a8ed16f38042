# SPDX-License-Identifier: Apache-2.0
"""Runs the stages of sessions whose program does not know of them: from the first run that needs a record to the close.

A session whose program gives it a hook of its own leaves its stages to that hook. Methods of the session are replaced
on the object alone, so other sessions do not notice.
"""

import itertools
import os
import threading
import weakref
from typing import Any
from typing import Optional

from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import errors
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.automatic import notices
from tensorflow_staging.python.automatic import program_end
from tensorflow_staging.python.session import all_sessions
from tensorflow_staging.python.session import early_runs
from tensorflow_staging.python.session import watched_runs
from tensorflow_staging.python.stats import ended_sessions

# Those that are open, with what manages them.
_managed: "weakref.WeakKeyDictionary[session_lib.BaseSession, _Management]" = weakref.WeakKeyDictionary()


def manage(session: session_lib.BaseSession) -> None:
  """Runs the stages of a new session, and says at the end of the program what they gained."""
  _manage(session, runs_stages=not early_runs.is_watched(session))


def watch_end(session: session_lib.BaseSession) -> None:
  """Says at the end of the program what the stages of a new session gained, which the program runs by itself."""
  _manage(session, runs_stages=False)


def _manage(session: session_lib.BaseSession, runs_stages: bool) -> None:
  program_end.say_what_it_gained()
  _managed[session] = _Management(session, runs_stages)


class _Management:
  """Stands between a session and its runs. Safe to use from several threads."""

  def __init__(self, session: session_lib.BaseSession, runs_stages: bool):
    """Begins.

    Args:
      session: The session.
      runs_stages: Whether to run its stages. Otherwise a hook of the program does.
    """
    # The session refers to this object, and should not live longer for it.
    self._session = weakref.ref(session)
    # Reentrant, because a signal handler may run a step, too.
    self._lock = threading.RLock()
    # The version of the graph that the latest run had, and how many sources it had when the stages were started.
    self._version: Optional[int] = None
    self._sources = 0  # Guarded by _lock.
    # How often `collect` was called. The next number is taken without a lock, which a signal handler that closes the
    # session might find the main thread holding.
    self._collections = itertools.count()
    session.close = self._close
    if not runs_stages:
      return
    all_sessions.note_managed(session)
    watched_runs.watch(session, self._start_if_needed)

  def collect(self) -> None:
    """Ends the stages, and notes what they have gained for the end of the program."""
    session = self._session()
    if session is None:
      return
    if next(self._collections) > 0:
      return
    all_sessions.end(session)
    notices.note_ended(ended_sessions.of_ended(session))

  def _close(self) -> None:
    session = self._session()
    if session is None:
      return  # It is being destroyed, which closes it.
    if not session._closed:
      self.collect()
    type(session).close(session)

  def _start_if_needed(
      self, session: session_lib.BaseSession, operations: list[ops.Operation],
      feeds: dict[tensor_lib.Tensor, Any]) -> None:
    """Starts the stages before a run that needs a record, and anew if the graph has grown by a source since."""
    version = session.graph.version
    if self._version == version:
      return
    if session._closed or not early_runs.needs_record(session, operations, feeds):
      return
    sources = _count_sources(session.graph)
    with self._lock:
      before, self._sources = self._sources, sources
    if 0 < before < sources:
      # New sources make new stages, which a new start finds.
      all_sessions.end(session)
    if before < sources:
      all_sessions.start(session)
    # From now on, runs need not be looked at until the graph grows.
    self._version = version


def _count_sources(graph: ops.Graph) -> int:
  types = (vocabulary.TAKE_OP, *early_runs.SOURCE_OPS)
  return sum(operation.type in types for operation in graph.get_operations())


def _collect_all() -> None:
  """Ends the stages of sessions that are still open."""
  for management in list(_managed.values()):
    try:
      management.collect()
    except errors.OpError:
      pass  # The session can no longer say.


def _forget() -> None:
  """In a forked child process, which says only what it does itself."""
  _managed.clear()


program_end.collect_with(_collect_all)
os.register_at_fork(after_in_child=_forget)
