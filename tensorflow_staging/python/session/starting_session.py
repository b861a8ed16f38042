# SPDX-License-Identifier: Apache-2.0
"""In which session stages are being started, for functions that the graph calls meanwhile."""

import contextlib
from collections.abc import Iterator

from tensorflow.python.client import session as session_lib

# Written by one starting thread at a time, which waits for the functions that read it.
_session: session_lib.BaseSession | None = None


@contextlib.contextmanager
def starting(session: session_lib.BaseSession) -> Iterator[None]:
  """Makes `session` the one that `current` returns.

  Args:
    session: The session. One thread at a time may be inside.

  Yields:
    Nothing.
  """
  global _session
  _session = session
  try:
    yield
  finally:
    _session = None


def current() -> session_lib.BaseSession | None:
  """The session whose stages are being started, if any."""
  return _session
