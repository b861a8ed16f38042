# SPDX-License-Identifier: Apache-2.0
"""A system's clock that jumps changes nothing about how long a stage waits."""

import sys

import pytest

from tensorflow_staging.python.testing import test_util

_PROGRAM = """
import threading
import time

import tensorflow as tf

def seconds(action):
  began = time.monotonic()
  action()
  return time.monotonic() - began

def fails(sess, step):
  try:
    sess.run(step)
  except tf.errors.FailedPreconditionError:
    pass

# The put timeout of 100 ms: a record that finds no room is dropped.
# The thread with which TensorFlow tunes a dataset follows the system's clock.
untuned = tf.data.Options()
untuned.autotune.enabled = False
number = tf.data.make_one_shot_iterator(tf.data.Dataset.range(10**9).with_options(untuned)).get_next()
record = tf.staged(number, timeout_millis=100)
with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
  sess.run(record)
  cpu, began = time.process_time(), time.monotonic()
  while tf.staging.stats(sess)[0].dropped < 5:
    time.sleep(0.01)
  print("dropped in time", 0.4 < time.monotonic() - began < 3)
  # A wait that ends at once would be repeated all the time.
  print("slept", time.process_time() - cpu < 0.5 * (time.monotonic() - began))

# How long the session waits for code that cannot be cancelled (1.5 s), and a step for a missing hook (5 s).
go_on = threading.Event()
slow = tf.staged(tf.numpy_function(lambda: go_on.wait() and 1, [], tf.int64))
with tf.Session() as sess, tf.Session() as without_hook:
  missing = threading.Thread(target=fails, args=[without_hook, record])
  began = time.monotonic()
  missing.start()
  hook = tf.make_prefetch_hook()
  hook.after_create_session(sess)
  print("stopped in time", seconds(lambda: hook.end(sess)) < 4)
  missing.join()
  print("failed in time", 4 < time.monotonic() - began < 9)
  go_on.set()
"""


# With the clock ahead of the kernel's, each end of a wait is an hour late, as after a jump back; and the reverse.
_SHIFTS = {"back": 3600, "ahead": -3600}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
  """A process for each jump; most of its time goes into waiting, so they run at the same time."""
  folder = tmp_path_factory.mktemp("clock")
  (folder / "program.py").write_text(_PROGRAM)
  library = folder / "other_clock.so"
  source = test_util.TESTDATA / "other_clock.cc"
  test_util.run(["g++", "-std=c++17", "-shared", "-fPIC", "-O1", source, "-o", library], folder)
  processes = {
      jump: test_util.start(
          [sys.executable, "program.py"], folder, TF_API_VERSION="1", LD_PRELOAD=str(library),
          OTHER_CLOCK_SECONDS=str(shift))
      for jump, shift in _SHIFTS.items()
  }
  yield processes
  for process in processes.values():
    process.kill()
    process.communicate()


@pytest.mark.parametrize("jump", _SHIFTS)
def test_a_jump_of_an_hour(jump, programs):
  output, log = programs[jump].communicate(timeout=test_util.PROGRAM_SECONDS)
  assert output.splitlines() == [
      "dropped in time True", "slept True", "stopped in time True", "failed in time True"], log
