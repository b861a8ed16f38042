# SPDX-License-Identifier: Apache-2.0
"""Calls a function as soon as a coordinator is asked to stop."""

import threading
from collections.abc import Callable

from tensorflow.python.training import coordinator


def call_at_stop(coord: coordinator.Coordinator, function: Callable[[], None], thread_name: str) -> None:
  """Calls a function once, in a thread of its own, as soon as a coordinator is asked to stop.

  Args:
    coord: The coordinator. Its `join` waits until the function has returned.
    function: What to call. It stays alive until then.
    thread_name: The name of the thread.
  """

  def wait_and_call():
    coord.wait_for_stop()
    function()

  # A daemon thread lets a program exit that never stops its coordinator.
  thread = threading.Thread(target=wait_and_call, name=thread_name, daemon=True)
  coord.register_thread(thread)
  thread.start()
