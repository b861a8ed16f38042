# SPDX-License-Identifier: Apache-2.0
"""Numbers that stand for sessions: a graph can pass a number, but not a session, to its Python code."""

import itertools
import weakref
from typing import Optional

from tensorflow.python.client import session as session_lib

# There is no lock, which a signal handler might find the main thread holding: each operation is indivisible.
_new_numbers = itertools.count(1)
_number_of_session: "weakref.WeakKeyDictionary[session_lib.BaseSession, int]" = weakref.WeakKeyDictionary()
_session_of_number: "weakref.WeakValueDictionary[int, session_lib.BaseSession]" = weakref.WeakValueDictionary()


def number_of(session: session_lib.BaseSession) -> int:
  """Finds the number of a session, which no other session of this process ever has.

  Args:
    session: The session. Does not live longer because it has a number.

  Returns:
    The number, at least 1.
  """
  number = _number_of_session.get(session)
  if number is None:
    number = next(_new_numbers)
    # Before anyone else can learn the number.
    _session_of_number[number] = session
    number = _number_of_session.setdefault(session, number)
  return number


def session_of(number: int) -> Optional[session_lib.BaseSession]:
  """Finds the session of a number.

  Args:
    number: What `number_of` has returned.

  Returns:
    The session, or None if it no longer exists.
  """
  return _session_of_number.get(number)
