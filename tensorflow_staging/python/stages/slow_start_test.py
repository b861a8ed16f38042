# SPDX-License-Identifier: Apache-2.0
"""A buffer of many records fills slowly while steps take from it, so that steps do not pay for that."""

import threading
import time
from concurrent import futures

import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import test_util

_CAPACITY = 40
# Such a buffer has no slow start (core/buffer/slow_start.h).
_SMALL_CAPACITY = 4
_STEP_SECONDS = 0.005


def _numbers(may_begin):
  """Returns a record that waits for an event at first."""

  def late(number):
    may_begin.wait(test_util.WAIT_SECONDS)
    return number

  number = test_util.dataset_record(1_000_000)
  return tf.ensure_shape(tf.numpy_function(late, [number], tf.int64), [])


def _first_step(sess, record, may_begin):
  """Runs a step that waits for its record, so the buffer cannot fill before it."""
  with futures.ThreadPoolExecutor() as pool:
    step = pool.submit(sess.run, record)
    test_util.wait_until(lambda: _stats(sess).waiting_takes == 1)
    may_begin.set()
    assert step.result() == 0


def _stats(sess):
  stage, = tf.staging.stats(sess)
  return stage


def _held(sess):
  return _stats(sess).records


def test_a_buffer_of_many_records_fills_slowly_while_steps_take():
  may_begin = threading.Event()
  record = tf.staged(_numbers(may_begin), capacity=_CAPACITY)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    _first_step(sess, record, may_begin)
    steps = 60
    for step in range(1, steps):
      assert sess.run(record) == step
      time.sleep(_STEP_SECONDS)
    # A producer that the machine stops for a while lets a step wait, and gets more room than the fewest.
    stats = _stats(sess)
    assert stats.records <= stats.room < stats.capacity == _CAPACITY
    # The program pauses.
    test_util.wait_until(lambda: _held(sess) == _CAPACITY)
    for step in range(steps, 2 * steps):
      assert sess.run(record) == step


def test_a_buffer_fills_at_once_before_the_first_step():
  record = tf.staged(test_util.dataset_record(1_000_000), capacity=_CAPACITY)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    test_util.wait_until(lambda: _held(sess) == _CAPACITY)
    assert [sess.run(record) for _ in range(3)] == [0, 1, 2]
    # It keeps its room.
    test_util.wait_until(lambda: _held(sess) == _CAPACITY)


def test_a_small_buffer_fills_at_once():
  may_begin = threading.Event()
  record = tf.staged(_numbers(may_begin), capacity=_SMALL_CAPACITY)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    _first_step(sess, record, may_begin)
    test_util.wait_until(lambda: _held(sess) == _SMALL_CAPACITY)
    assert _stats(sess).room == _SMALL_CAPACITY
