# SPDX-License-Identifier: Apache-2.0
"""With `capacity=tf.data.AUTOTUNE`, the buffer of a stage chooses its capacity."""

import re
import time

import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util

_STEPS = 100
# The capacity with which a buffer begins.
_LEAST = 4


def _capacity(sess) -> int:
  stage, = tf.staging.stats(sess)
  assert stage.autotune
  return stage.capacity


def _jittering_record() -> tf.Tensor:
  """A record that takes 8 ms, or 0 ms: in turns of 16."""

  def produce(number):
    time.sleep(0.008 if number // 16 % 2 else 0)
    return number

  number = tf.numpy_function(produce, [test_util.dataset_record(10 * _STEPS)], tf.int64)
  number.set_shape([])
  return number


def _step_of_5_ms(record) -> tf.Tensor:
  return tf.numpy_function(lambda value: (time.sleep(0.005), value)[1], [record], tf.int64)


@pytest.mark.alone
def test_it_grows_where_records_take_longer_and_shorter_by_turns():
  step = _step_of_5_ms(tf.staged(_jittering_record(), capacity=tf.data.AUTOTUNE))
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert [sess.run(step) for _ in range(_STEPS)] == list(range(_STEPS))
    assert _capacity(sess) > _LEAST


@pytest.mark.alone
@pytest.mark.parametrize("options", [{}, {"num_threads": 1}])
def test_it_is_the_default_of_smart_stage(options):
  step = _step_of_5_ms(_jittering_record())
  tf.train.mark_target_node([step])
  with smart_stage_sessions.smart_stage_session(**options) as sess:
    assert [sess.run(step) for _ in range(_STEPS)] == list(range(_STEPS))
    assert _capacity(sess) > _LEAST


@pytest.mark.alone
def test_it_stays_small_where_the_step_is_slower():
  step = _step_of_5_ms(tf.staged(test_util.dataset_record(1000), capacity=tf.data.AUTOTUNE))
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    sess.run(step)  # Prepares the step, while the buffer may be empty.
    for _ in range(_STEPS):
      sess.run(step)
    assert _capacity(sess) <= 2 * _LEAST


def test_a_join_and_the_order_of_records():
  record = tf.prefetch_join([test_util.dataset_record(500)], capacity=tf.data.AUTOTUNE)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, record) == list(range(500))


@pytest.mark.parametrize("capacity_bytes", [8, 100])
def test_the_bound_on_bytes_counts(capacity_bytes):
  record = tf.staged(test_util.dataset_record(100), capacity=50, capacity_bytes=capacity_bytes)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    sess.run(record)

    def is_full():
      stats, = tf.staging.stats(sess)
      assert stats.bytes <= capacity_bytes
      return stats.waiting_puts and stats.records == capacity_bytes // 8

    test_util.wait_until(is_full)


def test_it_says_what_it_settled_on(tmp_path):
  program = """
      import os
      os.dup2(1, 2)
      import tensorflow as tf
      number = tf.data.make_one_shot_iterator(tf.data.Dataset.range(20_000)).get_next()
      record = tf.staged(number, capacity=tf.data.AUTOTUNE)
      with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
        for _ in range(12_000):
          sess.run(record)
      """
  output = test_util.run_program(program, tmp_path)
  said = re.findall(r"Stage 'prefetch' has settled on a capacity of (\d+) records? \(within 512 MiB\)", output)
  # It says so at most once in 1,000 steps. On a busy machine it changes often at first.
  assert 1 <= len(said) <= 12
