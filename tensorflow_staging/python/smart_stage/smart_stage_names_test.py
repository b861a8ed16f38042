# SPDX-License-Identifier: Apache-2.0
"""A name in the user's graph refers to the value that the step sees, whichever nodes are staged."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import smart_stage_sessions


def _pair():
  numbers = tf.data.Dataset.range(100)
  return tf.data.make_one_shot_iterator(tf.data.Dataset.zip((numbers, numbers.map(lambda x: x + 1000)))).get_next()


def _in_step(tensor):
  return tensor + tf.get_variable("variable", initializer=np.int64(0))


def test_staged_tensors_are_fetched_with_the_step_that_uses_them():
  first, second = _pair()
  double = first * 2
  result = _in_step(double + second)
  with smart_stage_sessions.smart_stage_session(capacity=4) as sess:
    assert "IteratorGetNext" not in smart_stage_sessions.staged_ops(sess, result)
    for step in range(1, 20):
      assert sess.run([result]) == [3 * step + 1000]


def test_a_refused_fetch_takes_no_record():
  first, second = _pair()
  double = first * 2
  result = _in_step(double)
  with smart_stage_sessions.smart_stage_session() as sess:
    assert sess.run([result, second]) == [0, 1000]
    for _ in range(3):
      with pytest.raises(tf.errors.FailedPreconditionError, match=f"'{first.name}'.*mark_target_node"):
        sess.run([result, first])
    assert sess.run([result, second]) == [2, 1001]


def test_running_a_staged_node_takes_a_record():
  first, _ = _pair()
  result = _in_step(first * 2)
  with smart_stage_sessions.smart_stage_session() as sess:
    sess.run(first.op)
    assert sess.run(result) == 2


@pytest.mark.parametrize("smart_stage", [True, False])
def test_stacking_a_tensor_of_a_record_on_itself(smart_stage):
  # Grappler confuses the outputs of a node here; see core/graph/rewrite/pack_guard.h.
  numbers = tf.data.Dataset.range(100).batch(2, drop_remainder=True)
  first, second = tf.staged(
      tf.data.make_one_shot_iterator(tf.data.Dataset.zip((numbers, numbers.map(lambda x: x + 1000)))).get_next())
  stacked = tf.stack([tf.identity(second), second])
  tf.train.mark_target_node([stacked])
  result = stacked + 1
  config = smart_stage_sessions.smart_stage_config() if smart_stage else tf.ConfigProto()
  config.graph_options.rewrite_options.min_graph_nodes = -1
  with tf.Session(config=config) as sess, tf.make_prefetch_hook().running(sess):
    for step in range(0, 6, 2):
      values = sess.run([result, first])
      assert values[0].tolist() == [[1001 + step, 1002 + step]] * 2
      assert values[1].tolist() == [step, step + 1]


def test_both_paths_to_a_shared_random_number_see_the_same_draw():
  first, _ = _pair()
  noise = tf.random.uniform([], maxval=1000, dtype=tf.int64, seed=1)
  staged = first * 0 + noise
  result = _in_step(staged - noise)
  with smart_stage_sessions.smart_stage_session() as sess:
    assert [sess.run(result) for _ in range(20)] == [0] * 20
