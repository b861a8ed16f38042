# SPDX-License-Identifier: Apache-2.0
"""Stops the stages of a session that the program closes, where the session itself does not tell its runners."""

import functools
import weakref
from collections.abc import Callable

from tensorflow.python.client import session as session_lib


def watch(session: session_lib.BaseSession, stop: Callable[[session_lib.BaseSession], None]) -> None:
  """Calls `stop` each time the session has been closed. A second watch changes nothing.

  A closed session has cancelled its runs, those of its stages too, so `stop` has to wait for nothing long.
  """
  if "close" not in vars(session):
    session.close = functools.partial(_close, weakref.ref(session), stop)


def _close(
    reference: "weakref.ref[session_lib.BaseSession]", stop: Callable[[session_lib.BaseSession], None]) -> None:
  session = reference()
  try:
    type(session).close(session)
  finally:
    stop(session)
