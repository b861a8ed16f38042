# SPDX-License-Identifier: Apache-2.0
"""Calls a function before each run of a session.

Methods of the session are replaced on the object alone, so other sessions do not notice.
"""

import weakref
from collections.abc import Callable
from typing import Any
from typing import Optional

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import ops

from tensorflow_staging.python.session import callable_operations

# Gets the session, the targets of the run with the operations of its fetches, and what is fed, as keys.
BeforeRun = Callable[[session_lib.BaseSession, list[ops.Operation], dict[ops.Tensor, Any]], None]

# The methods of a session that all runs of Python's sessions pass.
_METHODS = ("_do_run", "make_callable", "_make_callable_from_options")


def watch(session: session_lib.BaseSession, before_run: BeforeRun) -> None:
  """Calls `before_run` before each run of a session, of its callables too, until `unwatch`."""
  watcher = _Watcher(session, before_run)
  for name in _METHODS:
    setattr(session, name, getattr(watcher, name))


def watcher_of(session: session_lib.BaseSession) -> Optional[BeforeRun]:
  """Returns what is called before each run of a session; None if nothing is."""
  method = vars(session).get("_do_run")
  watcher = getattr(method, "__self__", None)
  return watcher.before_run if isinstance(watcher, _Watcher) else None


def unwatch(session: session_lib.BaseSession) -> None:
  """Ends the watch over the runs of a session, if there is one. Callables that it has made are watched no more."""
  for name in _METHODS:
    vars(session).pop(name, None)


class _Watcher:
  """Has the methods that stand in place of a session's own."""

  def __init__(self, session: session_lib.BaseSession, before_run: BeforeRun):
    # The session refers to this object, and should not live longer for it.
    self._session = weakref.ref(session)
    self.before_run = before_run

  def _do_run(
      self, handle: Any, targets: list[ops.Operation], fetches: list[ops.Tensor], feeds: dict[ops.Tensor, Any],
      *options: Any) -> Any:
    session = self._session()
    self.before_run(session, [*targets, *(tensor.op for tensor in fetches)], feeds)
    return type(session)._do_run(session, handle, targets, fetches, feeds, *options)

  def make_callable(
      self, fetches: Any, feed_list: Optional[list[Any]] = None, accept_options: bool = False) -> Callable[..., Any]:
    session = self._session()
    call = type(session).make_callable(session, fetches, feed_list, accept_options)
    if feed_list is not None:
      return call  # It calls the session's method `run`.
    return self._watched(call, callable_operations.of_fetches(session, fetches), {})

  def _make_callable_from_options(self, options: config_pb2.CallableOptions) -> Callable[..., Any]:
    session = self._session()
    call = type(session)._make_callable_from_options(session, options)
    return self._watched(call, *callable_operations.of_options(session, options))

  def _watched(
      self, call: Callable[..., Any], operations: list[ops.Operation],
      feeds: dict[ops.Tensor, Any]) -> Callable[..., Any]:

    def watched_call(*arguments: Any, **keywords: Any) -> Any:
      session = self._session()
      # Most callables outlive the watch.
      if session is not None and watcher_of(session) is self.before_run:
        self.before_run(session, operations, feeds)
      return call(*arguments, **keywords)

    return watched_call
