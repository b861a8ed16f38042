# SPDX-License-Identifier: Apache-2.0
"""Initialising an iterator while its stage runs restarts the stage."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import smart_stage_sessions


def _train_and_eval(threads):
  """Builds two datasets behind one iterator; returns their initialisers, the step's result and a session."""
  iterator = tf.data.Iterator.from_structure(tf.int64, [])
  train = iterator.make_initializer(tf.data.Dataset.range(50))
  evaluation = iterator.make_initializer(tf.data.Dataset.range(1000, 1020))
  result = iterator.get_next() * 2 + tf.get_variable("variable", initializer=np.int64(0))
  return train, evaluation, result, smart_stage_sessions.smart_stage_session(train, capacity=3, num_threads=threads)


def _remaining(sess, result):
  values = []
  with pytest.raises(tf.errors.OutOfRangeError):
    while True:
      values.append(sess.run(result))
  return values


@pytest.mark.parametrize("threads", [1, 4])
def test_a_restart_discards_all_old_records_and_loses_no_new_one(threads):
  train, evaluation, result, session = _train_and_eval(threads)
  with session as sess:
    for _ in range(10):
      assert all(sess.run(result) < 1000 for _ in range(7))
      sess.run(evaluation)
      assert sorted(_remaining(sess, result)) == list(range(2000, 2040, 2))
      sess.run(train)


def test_the_session_continues_after_the_end_of_the_data():
  train, _, result, session = _train_and_eval(1)
  with session as sess:
    for _ in range(5):
      assert _remaining(sess, result) == list(range(0, 100, 2))
      sess.run(train)


def test_an_iterator_initialised_after_its_stage_has_started():
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(3))
  result = iterator.get_next() + tf.get_variable("variable", initializer=np.int64(0))
  with smart_stage_sessions.smart_stage_session() as sess:
    with pytest.raises(tf.errors.FailedPreconditionError, match="not been initialized"):
      sess.run(result)
    sess.run(iterator.initializer)
    assert _remaining(sess, result) == [0, 1, 2]


def test_iterators_that_restart_separately_have_separate_records():
  first = tf.data.make_initializable_iterator(tf.data.Dataset.range(100))
  second = tf.data.make_one_shot_iterator(tf.data.Dataset.range(1000, 1100))
  mixed = first.get_next() + second.get_next()
  result = mixed + tf.get_variable("variable", initializer=np.int64(0))
  with smart_stage_sessions.smart_stage_session(first.initializer, capacity=4) as sess:
    assert [sess.run(result) for _ in range(3)] == [1000, 1002, 1004]
    sess.run(first.initializer)
    assert [sess.run(result) for _ in range(3)] == [1003, 1005, 1007]


def test_an_initialiser_added_while_the_stage_runs():
  train, _, result, session = _train_and_eval(1)
  with session as sess:
    assert [sess.run(result) for _ in range(3)] == [0, 2, 4]
    iterator = tf.get_default_graph().get_operation_by_name("IteratorV2").outputs[0]
    later = tf.raw_ops.MakeIterator(dataset=tf.data.Dataset.range(500, 503)._variant_tensor, iterator=iterator)
    for _ in range(3):
      sess.run(later)
      assert _remaining(sess, result) == [1000, 1002, 1004]
      sess.run(train)
      assert sess.run(result) == 0
