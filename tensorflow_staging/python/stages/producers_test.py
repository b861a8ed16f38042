# SPDX-License-Identifier: Apache-2.0
"""A stage with many producers ends with the last of them, even on few threads or one core."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util

_PRODUCERS = 8


def test_the_buffer_closes_only_when_the_last_producer_is_done():
  numbers = iter(range(_PRODUCERS))
  lock = threading.Lock()
  another_ended, go_on = threading.Event(), threading.Event()

  def number():
    with lock:
      mine = next(numbers, None)
    if mine != 0:
      another_ended.set()
      raise StopIteration
    go_on.wait()
    return np.int64(mine)

  record = tf.staged(
      tf.numpy_function(number, [], tf.int64), num_threads=_PRODUCERS, deterministic=False)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    try:
      assert another_ended.wait(test_util.WAIT_SECONDS)
      with pytest.raises(tf.errors.DeadlineExceededError):
        sess.run(record, options=tf.RunOptions(timeout_in_ms=500))
    finally:
      go_on.set()
    assert test_util.drain(sess, record) == [0]


@pytest.mark.parametrize("threads", [1, 0], ids=["one inter-op thread", "all"])
def test_every_record_of_eight_producers_arrives_once(threads):
  record = tf.staged(test_util.dataset_record(2000), capacity=3, num_threads=_PRODUCERS)
  config = tf.ConfigProto(inter_op_parallelism_threads=threads)
  with tf.Session(config=config) as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, record) == list(range(2000))


def test_eight_producers_on_one_core(tmp_path):
  output = test_util.run_program(
      """
      import os
      os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
      import tensorflow as tf

      number = tf.data.make_one_shot_iterator(tf.data.Dataset.range(1000)).get_next()
      first = tf.staged(number, num_threads=8)
      second = tf.staged(first + 1, capacity=4)
      with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
        total = 0
        while not sess.should_stop():
          total += sess.run(second)
      print(total)
      """, tmp_path)
  assert output == "500500\n"
