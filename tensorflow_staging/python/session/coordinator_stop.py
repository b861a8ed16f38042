# SPDX-License-Identifier: Apache-2.0
"""What stages and the coordinator of their session have to know of each other when they stop."""

import threading
from collections.abc import Callable

from tensorflow.python.framework import errors
from tensorflow.python.training import coordinator


def expect_cancelled_runs(coord: coordinator.Coordinator) -> None:
  """Lets a thread of a coordinator end with `tf.errors.CancelledError` without failing the others.

  A monitored session ends its hooks before it stops its coordinator. In between, a queue runner whose run needs a
  record, such as that of `tf.compat.v1.train.SyncReplicasOptimizer`, is cancelled with the stages.

  Args:
    coord: The coordinator.
  """
  if errors.CancelledError not in coord._clean_stop_exception_types:
    coord._clean_stop_exception_types += (errors.CancelledError,)


# How often a thread asks whether it still waits for something. Chosen, not measured.
_PERIOD_SECONDS = 1.0


def call_at_stop(
    coord: coordinator.Coordinator, function: Callable[[], None], thread_name: str, is_over: Callable[[], bool]
) -> None:
  """Calls a function once, in a thread of its own, as soon as a coordinator is asked to stop.

  Args:
    coord: The coordinator. Its `join` waits until the function has returned.
    function: What to call. It stays alive until then.
    thread_name: The name of the thread.
    is_over: Says whether there is nothing to stop any more. Then the thread ends: a monitored session that fails while
      it is created never stops its coordinator.
  """

  def wait_and_call():
    while not coord.wait_for_stop(_PERIOD_SECONDS):
      if is_over():
        return
    function()

  # A daemon thread lets a program exit that never stops its coordinator.
  thread = threading.Thread(target=wait_and_call, name=thread_name, daemon=True)
  coord.register_thread(thread)
  thread.start()
