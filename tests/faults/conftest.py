# SPDX-License-Identifier: Apache-2.0
"""Checks after each file of this folder that its faults have left nothing behind."""

import gc
import threading

import pytest

from tensorflow_staging.python.session import all_sessions


@pytest.fixture(autouse=True, scope="module")
def nothing_left():
  """Fails the last test of a file if a session with stages, and so a buffer, or a thread of Python is left."""
  gc.collect()
  sessions = set(all_sessions._stages_of_session)
  threads = set(threading.enumerate())
  yield
  gc.collect()
  assert set(all_sessions._stages_of_session) <= sessions
  sessions.clear()
  # The limit of the test has a timer, which is still running.
  begun = {thread for thread in threading.enumerate() if not isinstance(thread, threading.Timer)}
  for thread in begun - threads:
    thread.join(5)
    assert not thread.is_alive(), thread
