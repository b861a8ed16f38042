# SPDX-License-Identifier: Apache-2.0
"""Runs the stages of sessions whose program does not know of them: from the first run that needs a record to the close.

A session whose program gives it a hook of its own leaves its stages to that hook. Methods of the session are replaced
on the object alone, so other sessions do not notice.
"""

import itertools
import os
import threading
import weakref
from collections.abc import Callable
from collections.abc import Iterable
from typing import Any
from typing import Optional

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import errors
from tensorflow.python.framework import ops

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.automatic import notices
from tensorflow_staging.python.automatic import program_end
from tensorflow_staging.python.session import all_sessions
from tensorflow_staging.python.session import callable_operations
from tensorflow_staging.python.session import early_runs
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
    session._do_run = self._do_run
    session.make_callable = self._make_callable
    session._make_callable_from_options = self._make_callable_from_options

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

  def _do_run(
      self, handle: Any, targets: list[ops.Operation], fetches: list[ops.Tensor], feeds: dict[ops.Tensor, Any],
      *options: Any) -> Any:
    session = self._session()
    self._start_if_needed(session, [*targets, *(tensor.op for tensor in fetches)], feeds)
    return type(session)._do_run(session, handle, targets, fetches, feeds, *options)

  def _make_callable(
      self, fetches: Any, feed_list: Optional[list[Any]] = None, accept_options: bool = False) -> Callable[..., Any]:
    session = self._session()
    call = type(session).make_callable(session, fetches, feed_list, accept_options)
    if feed_list is not None:
      return call  # It calls the session's method `run`.
    operations = callable_operations.of_fetches(session, fetches)

    def managed_call(*arguments: Any, **keywords: Any) -> Any:
      self._start_if_needed(session, operations, {})
      return call(*arguments, **keywords)

    return managed_call

  def _make_callable_from_options(self, options: config_pb2.CallableOptions) -> Callable[..., Any]:
    session = self._session()
    call = type(session)._make_callable_from_options(session, options)
    operations, feeds = callable_operations.of_options(session, options)

    def managed_call(*arguments: Any, **keywords: Any) -> Any:
      self._start_if_needed(session, operations, feeds)
      return call(*arguments, **keywords)

    return managed_call

  def _start_if_needed(
      self, session: session_lib.BaseSession, operations: Iterable[ops.Operation],
      feeds: dict[ops.Tensor, Any]) -> None:
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
