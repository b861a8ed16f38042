# SPDX-License-Identifier: Apache-2.0
"""The watch for Ctrl-C begins and ends in any order with what it watches."""

import signal
import threading

import pytest

from tensorflow_staging.python.session import interrupts
from tensorflow_staging.python.testing import test_util


class _Stages:
  """What is watched: runs or not, and can hold back the thread that asks."""

  def __init__(self):
    self.run = False
    self.asked = threading.Event()
    self.answers = threading.Event()
    self.at_next_question = lambda: None

  def needed(self) -> bool:
    run = self.run
    if threading.current_thread().name == "staging_interrupt":
      self.asked.set()
      assert self.answers.wait(test_util.WAIT_SECONDS)
    else:
      at_question, self.at_next_question = self.at_next_question, lambda: None
      at_question()
    return run


@pytest.fixture
def stages():
  return _Stages()


@pytest.fixture
def watch(stages):
  watch = interrupts.InterruptWatch(needed=stages.needed, stop=lambda: None)
  yield watch
  stages.run = False
  stages.answers.set()
  watch.end_if_not_needed()
  assert _threads() == []
  assert signal.set_wakeup_fd(-1) == -1


def _threads() -> list[threading.Thread]:
  return [thread for thread in threading.enumerate() if thread.name == "staging_interrupt"]


def test_stages_that_begin_while_the_thread_leaves_are_watched(stages, watch):
  watch.begin()
  leaving, = _threads()
  assert stages.asked.wait(test_util.WAIT_SECONDS)
  # The thread has found nothing to stop, and has not yet said so.
  stages.run = True
  watch.begin()
  stages.answers.set()
  leaving.join(test_util.WAIT_SECONDS)
  assert len(_threads()) == 1


def test_stages_that_begin_in_a_signal_handler_while_the_watch_ends_are_watched(stages, watch):
  stages.answers.set()
  watch.begin()

  def handle():
    stages.run = True
    watch.begin()

  stages.at_next_question = handle
  watch.end_if_not_needed()
  assert len(_threads()) == 1
  fd = signal.set_wakeup_fd(-1)
  assert fd != -1
  signal.set_wakeup_fd(fd)
