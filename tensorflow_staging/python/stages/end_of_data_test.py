# SPDX-License-Identifier: Apache-2.0
"""The end of the data: the buffer drains, then the step raises OutOfRangeError."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util


def _numbers(lines: list[str], **options):
  """Stages numbers parsed from lines of text; any other line raises an InvalidArgumentError."""
  dataset = tf.data.Dataset.from_tensor_slices(lines)
  line = tf.data.make_one_shot_iterator(dataset).get_next()
  return tf.staged(tf.string_to_number(line, tf.int64), **options)


def test_buffered_records_come_before_out_of_range():
  source = test_util.Source(end=3)
  record = tf.staged(source.tensor(), capacity=8)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    source.wait_until_asked(4)  # The producer has reached the end; nothing is taken yet.
    assert test_util.drain(sess, record) == [0, 1, 2]


def test_every_later_step_raises_out_of_range():
  record = tf.staged(test_util.dataset_record(1))
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, record) == [0]
    for _ in range(3):
      with pytest.raises(tf.errors.OutOfRangeError):
        sess.run(record)


_TYPES = pytest.mark.parametrize(
    "types", [(tf.errors.INVALID_ARGUMENT,), [tf.errors.InvalidArgumentError]], ids=["code", "class"])


@_TYPES
def test_closed_types_end_the_data(types):
  record = _numbers(["0", "1", "end", "3"], closed_exception_types=types)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, record) == [0, 1]


@_TYPES
def test_ignored_types_skip_one_record(types):
  record = _numbers(["0", "1", "two", "3"], ignored_exception_types=types)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, record) == [0, 1, 3]


def test_a_new_epoch_starts_after_the_iterator_is_initialized_again():
  dataset = tf.data.Dataset.range(3)
  iterator = tf.data.make_initializable_iterator(dataset)
  record = tf.staged(iterator.get_next(), capacity=2)
  hook = tf.make_prefetch_hook()
  with tf.Session() as sess:
    for _ in range(3):
      sess.run(iterator.initializer)
      with hook.running(sess):
        assert test_util.drain(sess, record) == [0, 1, 2]
