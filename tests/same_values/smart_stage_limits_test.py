# SPDX-License-Identifier: Apache-2.0
"""The limits of SmartStage that docs/smart_stage.md states."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import smart_stage_sessions


def _record(data=None):
  return tf.data.make_one_shot_iterator(tf.data.Dataset.range(8) if data is None else data).get_next()


def _plus_variable(value):
  return value + tf.get_variable("variable", initializer=np.int64(10))


def _staged_nodes():
  stage, = tf.staging.explain(config=smart_stage_sessions.smart_stage_config()).stages
  return set(stage.nodes)


def test_marking_an_identity_does_not_change_the_region():
  doubled = tf.identity(_record() * 2, name="doubled")
  result = _plus_variable(tf.add(doubled, 1, name="more"))
  before = _staged_nodes()
  assert "more" in before
  identity = tf.identity(doubled)
  tf.train.mark_target_node([identity])
  assert _staged_nodes() == before
  with smart_stage_sessions.smart_stage_session() as sess:
    assert sess.run([identity, result]) == [0, 11]
    assert sess.run([identity, result]) == [2, 13]
  tf.train.mark_target_node([doubled])
  assert "more" not in _staged_nodes()


def test_an_error_in_a_part_that_is_not_fetched_reaches_the_step():
  line = _record(tf.data.Dataset.from_tensor_slices(["1", "two", "3"]))
  length = tf.strings.length(line) + tf.get_variable("length", initializer=0)
  number = _plus_variable(tf.string_to_number(line, tf.int64))
  with smart_stage_sessions.smart_stage_session() as sess:
    assert sess.run([length, number]) == [1, 11]
    with pytest.raises(tf.errors.InvalidArgumentError, match="two"):
      sess.run(length)
    assert sess.run([length, number]) == [1, 13]


def test_a_run_before_the_hook_starts_gets_a_record():
  variable = tf.get_variable("mean", initializer=_record() * 2)
  with tf.train.MonitoredTrainingSession(
      config=smart_stage_sessions.smart_stage_config(), hooks=[tf.make_prefetch_hook()]) as sess:
    sess.run(variable)
