# SPDX-License-Identifier: Apache-2.0
"""Calls a function before each run of a session.

Methods of the session are replaced on the object alone, so other sessions do not notice.
"""

import functools
import weakref
from collections.abc import Callable
from typing import Any
from typing import Optional

from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib

from tensorflow_staging.python.session import run_methods

# Gets the session, the targets of the run with the operations of its fetches, and what is fed, as keys.
BeforeRun = Callable[[session_lib.BaseSession, list[ops.Operation], dict[tensor_lib.Tensor, Any]], None]

# The attribute of a watched session that has what is called before its runs.
_BEFORE_RUN = "_staging_before_run"


def watch(session: session_lib.BaseSession, before_run: BeforeRun) -> None:
  """Calls `before_run` before each run of a session, of its callables too, until `unwatch`."""

  def around(
      session: session_lib.BaseSession, operations: list[ops.Operation], feeds: dict[tensor_lib.Tensor, Any],
      run: Callable[[], Any]) -> Any:
    # Most callables outlive the watch.
    if watcher_of(session) is before_run:
      before_run(session, operations, feeds)
    return run()

  setattr(session, _BEFORE_RUN, before_run)
  methods = run_methods.surrounded(functools.partial(getattr, type(session)), around)
  for name, method in methods.items():
    setattr(session, name, _bound(method, session))


def watcher_of(session: session_lib.BaseSession) -> Optional[BeforeRun]:
  """Returns what is called before each run of a session; None if nothing is."""
  return vars(session).get(_BEFORE_RUN)


def unwatch(session: session_lib.BaseSession) -> None:
  """Ends the watch over the runs of a session, if there is one. Callables that it has made are watched no more."""
  for name in (_BEFORE_RUN, *run_methods.NAMES):
    vars(session).pop(name, None)


def _bound(method: Callable[..., Any], session: session_lib.BaseSession) -> Callable[..., Any]:
  """Returns a method of a session that does not keep it alive: the session refers to the method."""
  reference = weakref.ref(session)
  return lambda *arguments, **keywords: method(reference(), *arguments, **keywords)
