# SPDX-License-Identifier: Apache-2.0
"""With `num_threads=tf.data.AUTOTUNE`, a stage chooses how many threads produce its records."""

import time

import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util

_SECONDS = 30


def _record(seconds: float, count: int) -> tf.Tensor:
  """A record that takes `seconds` of waiting, during which other threads can produce others."""

  def produce(number):
    time.sleep(seconds)
    return number

  number = tf.numpy_function(produce, [test_util.dataset_record(count)], tf.int64)
  number.set_shape([])
  return number


def _run_until_threads(sess, step, threads: int) -> list[int]:
  """Runs steps until so many threads produce, or more. Returns the values of the steps."""
  deadline = time.monotonic() + _SECONDS
  values = []
  while time.monotonic() < deadline:
    values.append(sess.run(step))
    if tf.staging.stats(sess)[0].num_threads >= threads:
      return values
  raise AssertionError(f"There were never {threads} threads.")


def test_threads_are_added_while_the_step_waits():
  record = tf.staged(_record(0.005, 500), num_threads=tf.data.AUTOTUNE)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    values = _run_until_threads(sess, record, 2)
    values += test_util.drain(sess, record)
  assert sorted(values) == list(range(500))


def test_threads_are_added_with_smart_stage():
  record = _record(0.005, 10000)
  weight = tf.Variable(0, dtype=tf.int64)
  train = weight.assign_add(record)
  with smart_stage_sessions.smart_stage_session(num_threads=tf.data.AUTOTUNE) as sess:
    _run_until_threads(sess, train, 2)


@pytest.mark.alone
def test_one_thread_is_enough_for_a_slow_step():
  record = tf.staged(test_util.dataset_record(1000), num_threads=tf.data.AUTOTUNE)
  step = tf.numpy_function(lambda number: (time.sleep(0.01), number)[1], [record], tf.int64)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    values = [sess.run(step) for _ in range(100)]
    assert tf.staging.stats(sess)[0].num_threads == 1
  assert values == list(range(100))


def test_a_session_of_a_server():
  record = tf.staged(_record(0.002, 1000), num_threads=tf.data.AUTOTUNE, capacity=tf.data.AUTOTUNE)
  server = tf.train.Server.create_local_server()
  with tf.Session(server.target) as sess, tf.make_prefetch_hook().running(sess):
    values = test_util.drain(sess, record)
  assert sorted(values) == list(range(1000))


def test_an_iterator_that_is_initialized_again():
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(50))
  number = iterator.get_next()
  weight = tf.Variable(0, dtype=tf.int64)
  train = weight.assign_add(number)
  options = dict(num_threads=tf.data.AUTOTUNE, capacity=tf.data.AUTOTUNE)
  with smart_stage_sessions.smart_stage_session(iterator.initializer, **options) as sess:
    for _ in range(3):
      assert len(test_util.drain(sess, train)) == 50
      sess.run(iterator.initializer)
    assert sess.run(weight) == 3 * sum(range(50))
