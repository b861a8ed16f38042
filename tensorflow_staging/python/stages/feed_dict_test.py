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


def test_a_step_cannot_feed_what_the_stage_feeds():
  scale = tf.placeholder(tf.int64, [], name="scale")
  staged = tf.staged(test_util.dataset_record(9) * scale, feed_dict={scale: tf.constant(10, tf.int64)})
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert sess.run(staged) == 0
    for fetches in (staged, [staged, scale + 1]):
      with pytest.raises(tf.errors.InvalidArgumentError, match="'scale:0' is fed, but.*'prefetch'.*feeds it itself"):
        sess.run(fetches, {scale: 7})
    assert sess.run([staged + 0, scale + 1], {staged: 5, scale: 7}) == [5, 8]
    assert sess.run(staged) == 10


def test_what_a_step_feeds_reaches_the_value_of_a_feed_or_is_an_error():
  scale = tf.placeholder(tf.int64, [])
  ten = tf.constant(10, tf.int64, name="ten")
  staged = tf.staged(test_util.dataset_record(9) * scale, feed_dict={scale: ten * 1})
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    with pytest.raises(tf.errors.InvalidArgumentError, match="'ten:0' is fed, but"):
      sess.run(staged, {ten: 7})
    assert sess.run(staged) == 0


def test_stages_of_a_chain_may_feed_the_same_placeholder():
  scale = tf.placeholder(tf.int64, [])
  feed_dict = {scale: tf.constant(10, tf.int64)}
  first = tf.staged((test_util.dataset_record(5) + 1) * scale, feed_dict=feed_dict)
  second = tf.staged(first * scale, feed_dict=feed_dict)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, second) == [100, 200, 300, 400, 500]


def test_an_evaluation_feeds_what_it_has_read():
  handle = tf.placeholder(tf.string, [])
  train, test = (
      tf.data.make_one_shot_iterator(tf.data.Dataset.range(start, start + 9)) for start in (0, 100))
  features = tf.data.Iterator.from_string_handle(handle, tf.int64, []).get_next() * 2
  staged = tf.staged(features, feed_dict={handle: train.string_handle()})
  loss = staged + 1
  with tf.Session() as sess:
    test_handle = sess.run(test.string_handle())
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(loss) == 1
      with pytest.raises(tf.errors.InvalidArgumentError, match="is fed, but.*sess.run.features, feeds"):
        sess.run(loss, {handle: test_handle})
      assert sess.run(loss, {staged: sess.run(features, {handle: test_handle})}) == 201
      assert sess.run(loss) == 3


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
