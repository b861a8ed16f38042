# SPDX-License-Identifier: Apache-2.0
"""Several producers make the records of one: in the same order, with the same random numbers."""

import threading
import time

import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import stage_kinds
from tensorflow_staging.python.testing import test_util

_RECORDS = 60
_THREADS = 4


def _uneven(number):
  """Waits longer for some records than the next ones take together."""
  time.sleep(0.01 if number % 5 == 0 else 0.001)
  return number


def _number_and_draw() -> tf.Tensor:
  """Returns the next number, with a random number in its last digits. It is made in uneven times."""
  number = test_util.dataset_record(_RECORDS)
  draw = tf.random.uniform([], maxval=1000, dtype=tf.int64, seed=7)
  number = tf.numpy_function(_uneven, [number], tf.int64)
  number.set_shape([])
  return 1000 * number + draw


def _train(smart_stage, **options) -> list[int]:
  with tf.Graph().as_default():
    tf.set_random_seed(3)
    step, config = stage_kinds.stage(_number_and_draw(), smart_stage, capacity=3, **options)
    with tf.Session(config=config) as sess:
      sess.run(tf.global_variables_initializer())
      with tf.make_prefetch_hook().running(sess):
        return [int(value) for value in test_util.drain(sess, step)]


@stage_kinds.BOTH
@pytest.mark.parametrize("num_threads", [_THREADS, tf.data.AUTOTUNE])
def test_their_records_are_those_of_one(smart_stage, num_threads):
  alone = _train(smart_stage, num_threads=1)
  assert [value // 1000 for value in alone] == list(range(_RECORDS))
  assert _train(smart_stage, num_threads=num_threads) == alone


@stage_kinds.BOTH
def test_in_any_order_each_element_makes_one_record(smart_stage):
  values = _train(smart_stage, num_threads=_THREADS, deterministic=False)
  assert sorted(value // 1000 for value in values) == list(range(_RECORDS))


@stage_kinds.BOTH
@pytest.mark.parametrize("deterministic", [True, False])
def test_they_compute_at_the_same_time(smart_stage, deterministic):
  # Breaks, and fails, unless all producers meet here.
  together = threading.Barrier(_THREADS, timeout=60)

  def meet(number):
    together.wait()
    return number

  number = tf.numpy_function(meet, [test_util.dataset_record(10 * _THREADS)], tf.int64)
  number.set_shape([])
  step, config = stage_kinds.stage(
      number, smart_stage, capacity=1, num_threads=_THREADS, deterministic=deterministic)
  with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      values = test_util.drain(sess, step)
  assert sorted(values) == list(range(10 * _THREADS))
  if deterministic:
    assert values == sorted(values)


def test_a_read_in_a_conditional_keeps_the_order():
  number = test_util.dataset_record(_RECORDS)
  other = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100, 1000)).get_next
  number = tf.cond(tf.equal(number % 3, 0), lambda: 1000 * number + other(), lambda: 1000 * number)
  step = tf.staged(number, capacity=3, num_threads=_THREADS)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    expected = [1000 * i + (100 + i // 3 if i % 3 == 0 else 0) for i in range(_RECORDS)]
    assert test_util.drain(sess, step) == expected


def test_an_error_comes_after_the_records_before_it_and_the_next_element_follows():
  number = test_util.dataset_record(20)
  with tf.control_dependencies([tf.debugging.assert_none_equal(number % 7, tf.constant(6, tf.int64))]):
    number = tf.numpy_function(_uneven, [number], tf.int64)
  number.set_shape([])
  step = tf.staged(number, capacity=3, num_threads=_THREADS)
  taken = []
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    while True:
      try:
        taken.append(int(sess.run(step)))
      except tf.errors.InvalidArgumentError:
        taken.append("error")
      except tf.errors.OutOfRangeError:
        break
  assert taken == ["error" if i % 7 == 6 else i for i in range(20)]


@pytest.mark.parametrize("value", [1, None, "yes"])
def test_deterministic_is_a_bool(value):
  with pytest.raises(TypeError, match="deterministic"):
    tf.staged(test_util.dataset_record(3), deterministic=value)
