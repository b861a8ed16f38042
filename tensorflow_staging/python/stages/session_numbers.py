# SPDX-License-Identifier: Apache-2.0
"""Numbers that stand for sessions: a graph can pass a number, but not a session, to its Python code."""

import itertools
import threading
import weakref
from typing import Optional

from tensorflow.python.client import session as session_lib

_lock = threading.Lock()
_new_numbers = itertools.count(1)  # Guarded by _lock.
_number_of_session: "weakref.WeakKeyDictionary[session_lib.BaseSession, int]" = (
    weakref.WeakKeyDictionary())  # Guarded by _lock.
_session_of_number: "weakref.WeakValueDictionary[int, session_lib.BaseSession]" = (
    weakref.WeakValueDictionary())  # Guarded by _lock.


def number_of(session: session_lib.BaseSession) -> int:
  """Finds the number of a session, which no other session of this process ever has.

  Args:
    session: The session. Does not live longer because it has a number.

  Returns:
    The number, at least 1.
  """
  with _lock:
    number = _number_of_session.get(session)
    if number is None:
      number = next(_new_numbers)
      _number_of_session[session] = number
      _session_of_number[number] = session
    return number


def session_of(number: int) -> Optional[session_lib.BaseSession]:
  """Finds the session of a number.

  Args:
    number: What `number_of` has returned.

  Returns:
    The session, or None if it no longer exists.
  """
  with _lock:
    return _session_of_number.get(number)
