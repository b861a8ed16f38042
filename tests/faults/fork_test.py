# SPDX-License-Identifier: Apache-2.0
"""A process with stages is forked: the child ends within seconds, and the parent goes on as if nothing had happened."""

import pytest

from tensorflow_staging.python.testing import stage_kinds
from tensorflow_staging.python.testing import test_util

_LIMIT_SECONDS = 5

# With tf.staged, the child leaves by sys.exit. TensorFlow's own exit after a fork hangs or crashes if the program has
# used tf.data, which SmartStage needs.
_HEAD = f"""
import itertools
import multiprocessing
import os
import sys
import threading
import time

import numpy as np
import tensorflow as tf

def train(smart_stage, then, waits_before=None):
  '''Trains in a session of a new graph, with the numbers from 0; calls `then` with the session and the step.'''
  numbers = itertools.count()

  def next_number(*_):
    number = next(numbers)
    if number == waits_before:
      go_on.wait()
    return np.int64(number)

  with tf.Graph().as_default():
    config = tf.ConfigProto()
    if smart_stage:
      dataset = tf.data.Dataset.from_tensors(0).repeat()
      dataset = dataset.map(lambda _: tf.ensure_shape(tf.numpy_function(next_number, [], tf.int64), []))
      number = tf.data.make_one_shot_iterator(dataset).get_next() * 1
      config.graph_options.optimizer_options.do_smart_stage = True
    else:
      number = tf.staged(tf.numpy_function(next_number, [], tf.int64), capacity=2)
    step = number + tf.get_variable("zero", initializer=tf.zeros([], tf.int64), use_resource=True)
    with tf.Session(config=config) as sess:
      sess.run(tf.global_variables_initializer())
      with tf.make_prefetch_hook().running(sess):
        assert len(tf.staging.stats(sess)) == 1
        return then(sess, step)

def five_steps(sess, step):
  return [int(sess.run(step)) for _ in range(5)]

def status_of(work):
  '''Runs `work` in a child process; returns its exit status, None if it does not end in time.'''
  child = os.fork()
  if child == 0:
    leave(work())
  deadline = time.monotonic() + {_LIMIT_SECONDS}
  while time.monotonic() < deadline:
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
      return os.waitstatus_to_exitcode(status)
    time.sleep(0.01)
  os.kill(child, 9)
  os.waitpid(child, 0)

def report(sess, step):
  '''In the child: the session is closed.'''
  try:
    sess.run(step)
  except RuntimeError as error:
    return 3 if "closed" in str(error) else 4
"""


@pytest.mark.alone
@stage_kinds.BOTH
def test_fork(tmp_path, smart_stage):
  output = test_util.run_program(_HEAD + f"""
go_on = threading.Event()
leave = os._exit if {smart_stage} else sys.exit

def in_child():
  return 5 if train({smart_stage}, five_steps) == list(range(5)) else 6

def fork_while_the_producer_waits_for_room(sess, step):
  while tf.staging.stats(sess)[0].waiting_puts == 0:
    time.sleep(0.001)
  print("put", status_of(lambda: report(sess, step)), five_steps(sess, step))
  process = multiprocessing.get_context("fork").Process(target=lambda: None)
  process.start()
  process.join({_LIMIT_SECONDS})
  print("multiprocessing", process.exitcode)

def fork_while_a_step_waits_for_a_record(sess, step):
  taken = []
  thread = threading.Thread(target=lambda: taken.extend(five_steps(sess, step)))
  thread.start()
  while tf.staging.stats(sess)[0].waiting_takes == 0:
    time.sleep(0.001)
  print("take", status_of(lambda: report(sess, step)))
  go_on.set()
  thread.join()
  print(taken)

print("before", status_of(in_child))
train({smart_stage}, fork_while_the_producer_waits_for_room)
train({smart_stage}, fork_while_a_step_waits_for_a_record, waits_before=3)
print("after", status_of(lambda: 0))
""", tmp_path)
  assert output.splitlines() == [
      "before 5", "put 3 [0, 1, 2, 3, 4]", "multiprocessing 0", "take 3", "[0, 1, 2, 3, 4]", "after 0"]
