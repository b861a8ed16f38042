# SPDX-License-Identifier: Apache-2.0
"""The clocks of a measured program do not hang a signal handler that takes a step, nor a forked child."""

import atexit
import os
import threading

import pytest

from tensorflow_staging.python.automatic import measured_run
from tensorflow_staging.python.testing import test_util

# After so many steps, a clock asks for the stages, with the lock.
_STEPS = 10


class _Model:
  pass


@pytest.fixture
def clocks(tmp_path):
  plan = measured_run.Plan(
      parent=os.getppid(), result=str(tmp_path / "result"), warm_up=0, steps=10**9, seconds=10**9)
  clocks = measured_run.Clocks(plan)
  atexit.unregister(clocks._end)
  return clocks


def test_a_signal_handler_takes_a_step(clocks):
  model, other = _Model(), _Model()

  def handle():
    clocks.note(other, list)
    return []

  for _ in range(_STEPS):
    clocks.note(model, handle)
  assert (clocks.of(model).seen, clocks.of(other).seen) == (_STEPS, 1)


def test_a_child_is_forked_while_a_thread_notes_a_step(clocks):
  model, asked, answers = _Model(), threading.Event(), threading.Event()

  def wait():
    asked.set()
    assert answers.wait(test_util.WAIT_SECONDS)
    return []

  def take_steps():
    for _ in range(_STEPS):
      clocks.note(model, wait)

  thread = threading.Thread(target=take_steps)
  thread.start()
  assert asked.wait(test_util.WAIT_SECONDS)
  child = os.fork()
  if child == 0:
    clocks.of(_Model())
    os._exit(0)
  try:
    test_util.wait_until(lambda: os.waitpid(child, os.WNOHANG)[0] == child)
  except AssertionError:
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise
  finally:
    answers.set()
    thread.join()
