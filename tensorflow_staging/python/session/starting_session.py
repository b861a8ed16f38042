# SPDX-License-Identifier: Apache-2.0
"""The session whose stages are starting, for the Python functions that the graph calls meanwhile."""

import contextlib
from collections.abc import Iterator

from tensorflow.python.client import session as session_lib

# Only one thread at a time starts stages and writes this. It waits for the functions that read it.
_session: session_lib.BaseSession | None = None


@contextlib.contextmanager
def starting(session: session_lib.BaseSession) -> Iterator[None]:
  """Makes `current` return `session` inside a `with` block.

  Only one thread at a time may be in such a block.

  Args:
    session: The session.

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
  """Returns the session whose stages are starting, or None if no stages are starting."""
  return _session
