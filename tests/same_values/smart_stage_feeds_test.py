# SPDX-License-Identifier: Apache-2.0
"""Feeding staged tensors works as without SmartStage; fed and staged values never mix."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import smart_stage_sessions


def _model():
  """Builds a stage of records 0, 1, 2, ...; returns the record, its staged double and the step's result."""
  record = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next()
  double = tf.multiply(record, 2, name="double")
  variable = tf.get_variable("variable", initializer=np.int64(1000))
  return record, double, double + variable


def test_a_fed_boundary_tensor_replaces_the_taken_one():
  _, double, result = _model()
  with smart_stage_sessions.smart_stage_session() as sess:
    assert sess.run(result) == 1000
    assert sess.run(result, {double: 7}) == 1007
    assert sess.run(result) == 1002  # The fed run took no record.


def test_a_run_that_feeds_a_source_computes_the_region_in_the_step():
  record, double, result = _model()
  with smart_stage_sessions.smart_stage_session() as sess:
    assert sess.run([double, result], {record: 50}) == [100, 1100]
    assert sess.run(result) == 1000  # The fed run took no record.


def _sum_of_pair():
  dataset = tf.data.Dataset.range(100)
  pair = tf.data.make_one_shot_iterator(tf.data.Dataset.zip((dataset, dataset))).get_next()
  variable = tf.get_variable("variable", initializer=np.int64(1000))
  return pair, pair[0] * 2 + pair[1] * 3 + variable


def test_a_run_that_feeds_part_of_a_record_takes_the_rest_from_the_record():
  pair, result = _sum_of_pair()
  with smart_stage_sessions.smart_stage_session() as sess:
    assert sess.run(result) == 1000
    assert sess.run(result, {pair[0]: 5}) == 1013
    assert sess.run(result) == 1010
    assert sess.run(result, {pair[0]: 5, pair[1]: 1}) == 1013  # Takes no record.
    assert sess.run([result, pair[0]], {pair[1]: 0}) == [1006, 3]


def test_without_the_elements_feeding_part_of_a_record_is_refused_with_the_names():
  pair, result = _sum_of_pair()
  with smart_stage_sessions.smart_stage_session(carry_elements=False) as sess:
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
      sess.run(result, {pair[0]: 5})
    assert pair[0].name in error.value.message
    assert "'prefetch'" in error.value.message
    assert "tf.train.mark_target_node" in error.value.message
    assert sess.run(result) == 1000
    assert sess.run(result, {pair[0]: 5, pair[1]: 1}) == 1013


def test_a_constant_that_the_region_uses_can_be_fed():
  record = tf.data.make_one_shot_iterator(tf.data.Dataset.range(1, 100)).get_next()
  factor = tf.constant(2, tf.int64, name="factor")
  result = record * factor + tf.get_variable("variable", initializer=np.int64(1000))
  with smart_stage_sessions.smart_stage_session() as sess:
    assert sess.run(result) == 1002
    assert sess.run(result, {factor: 50}) == 1100
    assert sess.run(result, {factor: 50, record: 7}) == 1350
    assert sess.run(result) == 1006


def test_a_tensor_of_tf_staged_can_be_fed():
  record = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next()
  staged = tf.staged(record)
  result = staged * 2 + tf.get_variable("variable", initializer=np.int64(1000))
  with smart_stage_sessions.smart_stage_session() as sess:
    assert "Mul" not in smart_stage_sessions.staged_ops(sess, result)  # SmartStage staged it, too.
    assert sess.run(result, {staged: 50}) == 1100
    assert sess.run(result) == 1002


def test_a_marked_tensor_can_be_fed_beside_a_record():
  dataset = tf.data.Dataset.range(100)
  pair = tf.data.make_one_shot_iterator(tf.data.Dataset.zip((dataset, dataset))).get_next()
  first = tf.identity(pair[0])
  tf.train.mark_target_node([first])
  result = first * 2 + pair[1] * 3 + tf.get_variable("variable", initializer=np.int64(1000))
  with smart_stage_sessions.smart_stage_session() as sess:
    assert sess.run(result) == 1000
    assert sess.run(result, {first: 10}) == 1023
    assert sess.run(result) == 1010


def test_a_fed_run_does_not_wait_for_a_stage_that_has_ended():
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(2))
  record = iterator.get_next()
  drawn = record + tf.random.uniform([], maxval=1, dtype=tf.int64)
  result = drawn + tf.get_variable("variable", initializer=np.int64(1000))
  with smart_stage_sessions.smart_stage_session(iterator.initializer) as sess:
    assert [sess.run(result) for _ in range(2)] == [1000, 1001]
    with pytest.raises(tf.errors.OutOfRangeError):
      sess.run(result)
    assert sess.run(result, {record: 5}, tf.RunOptions(timeout_in_ms=10000)) == 1005
    sess.run(iterator.initializer)
    assert sess.run(result) == 1000
