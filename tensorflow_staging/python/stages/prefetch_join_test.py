# SPDX-License-Identifier: Apache-2.0
"""`tf.prefetch_join` puts the records of several sources into one buffer."""

import re

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util


def test_records_of_all_sources_arrive_and_each_source_keeps_its_order():
  low, high = test_util.dataset_record(40), test_util.dataset_record(20) + 100
  record = tf.prefetch_join([{"x": low}, {"x": high}], capacity=4)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    taken = test_util.drain(sess, record["x"])
  assert [n for n in taken if n < 100] == list(range(40))
  assert [n for n in taken if n >= 100] == list(range(100, 120))


def test_an_error_of_one_source_is_the_cause():
  bad = tf.cast(tf.string_to_number(tf.constant("bad")), tf.int64)
  record = tf.prefetch_join([bad, test_util.dataset_record(3)])
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad"):
      while True:
        sess.run(record)


def test_the_error_of_one_source_does_not_wait_for_another():
  held, failing = test_util.Source(), test_util.Source(end=0, error=ValueError("broken source"))
  held.hold()
  failing.hold()
  record = tf.prefetch_join([held.tensor(), failing.tensor()])
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    held.wait_until_asked(1)
    failing.release()
    with pytest.raises(tf.errors.InvalidArgumentError, match="broken source"):
      sess.run(record, options=tf.RunOptions(timeout_in_ms=test_util.WAIT_SECONDS * 1000))
    held.release()


def test_static_shapes_hold_for_every_source():
  first = {"d": tf.zeros([2, 3]), "s": tf.sparse.from_dense([[1, 0]])}
  second = {"d": tf.zeros([4, 3]), "s": tf.sparse.from_dense([[1, 0], [0, 2]])}
  record = tf.prefetch_join([first, second])
  assert record["d"].shape.as_list() == [None, 3]
  assert record["s"].shape.as_list() == [None, 2]


def test_a_value_may_differ_from_source_to_source():
  sources = [
      {"x": test_util.dataset_record(2), "source": "low", "weight": np.array([0.5])},
      {"x": test_util.dataset_record(2) + 10, "source": "high", "weight": np.array([1.5, 2.5])},
  ]
  record = tf.prefetch_join(sources)
  assert record["weight"].shape.as_list() == [None]
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    taken = test_util.drain(sess, record)
  assert sorted((step["x"], step["source"], step["weight"].tolist()) for step in taken) == [
      (0, b"low", [0.5]), (1, b"low", [0.5]), (10, b"high", [1.5, 2.5]), (11, b"high", [1.5, 2.5])]


@pytest.mark.parametrize("sources", [[], (), None, {}])
def test_at_least_one_source_is_needed(sources):
  with pytest.raises(ValueError, match="thread_to_features must be a list or tuple of at least"):
    tf.prefetch_join(sources)


def test_types_must_agree():
  message = re.escape(
      "thread_to_features[1] must have the types of thread_to_features[0], ['int32'], got ['float32']")
  with pytest.raises(ValueError, match=message):
    tf.prefetch_join([tf.constant(1), tf.constant(1.0)])


def test_structures_must_agree():
  with pytest.raises((TypeError, ValueError), match="structure|sequence type|same keys"):
    tf.prefetch_join([{"x": tf.constant(1)}, [tf.constant(1)]])


def test_a_bad_leaf_is_named():
  with pytest.raises(TypeError, match=r"thread_to_features\[1\]\['x'\] must be a tf.Tensor"):
    tf.prefetch_join([{"x": tf.constant(1)}, {"x": object()}])


@pytest.mark.parametrize("other", [[1], {"x": 1}, (1,)], ids=["list", "dict", "tuple"])
def test_a_source_of_another_structure_is_named(other):
  with pytest.raises((TypeError, ValueError), match=r"thread_to_features\[1\] must have the structure of"):
    tf.prefetch_join([tf.constant(1), other])
