# SPDX-License-Identifier: Apache-2.0
"""Dropped records and ignored errors are counted, and logged at most once a second."""

import re
import time

import tensorflow as tf

from tensorflow_staging.python.pywrap import _pywrap_staging
from tensorflow_staging.python.stages import stage_graph
from tensorflow_staging.python.testing import test_util

# Redirects stderr to stdout, because `run_program` returns only stdout.
_HEAD = """
      import os
      os.dup2(1, 2)
      import numpy as np
      import tensorflow as tf
      """


def test_an_ignored_error_is_counted():
  lines = tf.data.Dataset.from_tensor_slices(["1", "two", "three", "4"])
  number = tf.string_to_number(tf.data.make_one_shot_iterator(lines).get_next(), tf.int64)
  record = tf.staged(number, capacity=4, ignored_exception_types=(tf.errors.INVALID_ARGUMENT,))
  options, = tf.get_collection(stage_graph.RUNNERS_COLLECTION)
  with tf.Session() as sess:
    sess._extend_graph()
    runner = _pywrap_staging.PrefetchRunner(sess._session, options)
    runner.start()
    assert test_util.drain(sess, record) == [1, 4]
    runner.stop()
  counted = {"name": "prefetch", "records": 2, "ignored": 2, "running": False, "threads": 0}
  assert runner.stats().items() >= counted.items()


def test_ignored_errors_are_logged_once_a_second(tmp_path):
  begin = time.monotonic()
  output = test_util.run_program(
      _HEAD + """
      lines = tf.data.Dataset.from_tensors("bad").repeat(400)
      number = tf.string_to_number(tf.data.make_one_shot_iterator(lines).get_next(), tf.int64)
      tf.staged(number, name="numbers", ignored_exception_types=(tf.errors.InvalidArgumentError,))
      with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
        sess.run("numbers/TensorBufferTake:0")
      """, tmp_path)
  seconds = time.monotonic() - begin
  logged = re.findall(r"Stage 'numbers' ignored an error, .*; (\d+) so far", output)
  assert logged[0] == "1"
  assert len(logged) <= 1 + seconds


def test_a_record_that_finds_no_room_is_dropped_and_the_producer_goes_on():
  source = test_util.Source()
  record = tf.staged(source.tensor(), timeout_millis=20)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    source.wait_until_asked(6)
    assert sess.run(record) == 0
    # At least records 1 to 3 found no room in time.
    assert sess.run(record) >= 4


def test_dropped_records_are_counted_and_logged_once_a_second(tmp_path):
  begin = time.monotonic()
  output = test_util.run_program(
      _HEAD + """
      import threading

      enough = threading.Event()
      numbers = iter(range(10**9))

      def number():
        result = next(numbers)
        if result == 100:
          enough.set()
        return np.int64(result)

      tf.staged(tf.numpy_function(number, [], tf.int64), timeout_millis=1, name="numbers")
      with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
        enough.wait()
      """, tmp_path)
  seconds = time.monotonic() - begin
  logged = re.findall(r"Stage 'numbers' dropped a record: .* Dropped so far: (\d+)", output)
  assert logged[0] == "1"
  assert len(logged) <= 1 + seconds


def test_without_a_limit_nothing_is_dropped():
  source = test_util.Source(end=50)
  record = tf.staged(source.tensor(), timeout_millis=0, num_threads=1)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    source.wait_until_asked(2)
    assert test_util.drain(sess, record) == list(range(50))
