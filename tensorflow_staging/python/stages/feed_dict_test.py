# SPDX-License-Identifier: Apache-2.0
"""The `feed_dict` of a stage is evaluated for each record."""

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util


def test_a_placeholder_is_fed_for_each_record():
  number = tf.placeholder(tf.int64, [])
  record = tf.staged(number * 10, feed_dict={number: test_util.dataset_record(5)})
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, record) == [0, 10, 20, 30, 40]


def test_what_a_step_feeds_does_not_reach_the_stage():
  words = tf.placeholder(tf.string, [], name="words")
  staged = tf.staged(tf.strings.length(words))
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    with pytest.raises(tf.errors.InvalidArgumentError, match="so what a step feeds does not reach it. Give tf.staged"):
      sess.run(staged, {words: "abc"})


def test_any_tensor_may_be_replaced():
  replaced = tf.constant(-1, tf.int64) + 0
  record = tf.staged((replaced, replaced + 1),
                     feed_dict={replaced: test_util.dataset_record(2)})
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, record) == [(0, 1), (1, 2)]
    # Outside the stage, the tensor keeps its own value.
    assert sess.run(replaced) == -1


def test_feeds_of_one_record_are_computed_together():
  number = test_util.dataset_record(50)
  left, right = tf.placeholder(tf.int64, []), tf.placeholder(tf.int64, [])
  record = tf.staged(right - left, feed_dict={left: number, right: number + 7}, num_threads=4)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, record) == [7] * 50


def test_a_sparse_placeholder_is_fed_by_a_sparse_tensor():
  fed = tf.sparse.placeholder(tf.int32, [2, 2])
  source = tf.sparse.from_dense([[1, 0], [0, 2]])
  record = tf.staged(tf.sparse.to_dense(fed), feed_dict={fed: source})
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    np.testing.assert_array_equal(sess.run(record), [[1, 0], [0, 2]])


def test_an_ignored_error_in_a_feed_skips_one_record():
  dataset = tf.data.Dataset.from_tensor_slices(["1", "two", "3"])
  number = tf.string_to_number(tf.data.make_one_shot_iterator(dataset).get_next(), tf.int64)
  fed = tf.placeholder(tf.int64, [])
  record = tf.staged(
      fed + 0, feed_dict={fed: number}, ignored_exception_types=(tf.errors.INVALID_ARGUMENT,))
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, record) == [1, 3]
