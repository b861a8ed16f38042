# SPDX-License-Identifier: Apache-2.0
"""An error in a region reaches the step with its type, message and node."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util


def _staged_parse(lines: list[str], **options):
  dataset = tf.data.Dataset.from_tensor_slices(lines)
  line = tf.data.make_one_shot_iterator(dataset).get_next()
  return tf.staged(tf.string_to_number(line, tf.int64, name="parse_line"), **options)


def test_type_message_and_node_arrive_after_the_good_records():
  record = _staged_parse(["7", "seven", "8"], capacity=4)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert sess.run(record) == 7
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
      sess.run(record)
  assert "convert string: seven" in raised.value.message
  assert "parse_line" in raised.value.message


def test_each_step_sees_the_cause_of_its_own_element():
  record = _staged_parse(["seven", "eight", "9"])
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    for word in ("seven", "eight"):
      with pytest.raises(tf.errors.InvalidArgumentError, match=word):
        sess.run(record)
    assert sess.run(record) == 9
    for _ in range(3):
      with pytest.raises(tf.errors.OutOfRangeError):
        sess.run(record)


def test_the_first_of_several_threads_names_the_cause():
  record = _staged_parse(["seven"] * 8, num_threads=4)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    with pytest.raises(tf.errors.InvalidArgumentError, match="seven"):
      sess.run(record)


def test_python_errors_keep_their_text():
  source = test_util.Source(end=1, error=KeyError("no such column: price"))
  record = tf.staged(source.tensor(name="read_columns"))
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert sess.run(record) == 0
    with pytest.raises(tf.errors.OpError, match="no such column: price") as raised:
      sess.run(record)
  assert "read_columns" in raised.value.message


def test_out_of_range_that_is_not_closed_is_an_error_with_its_message():
  record = tf.staged(
      test_util.dataset_record(1), closed_exception_types=(tf.errors.DATA_LOSS,))
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert sess.run(record) == 0
    with pytest.raises(tf.errors.OutOfRangeError, match="IteratorGetNext"):
      sess.run(record)


def test_a_monitored_session_raises_it_too():
  record = _staged_parse(["seven"])
  with pytest.raises(tf.errors.InvalidArgumentError, match="seven"):
    with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
      sess.run(record)
