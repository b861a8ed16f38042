# SPDX-License-Identifier: Apache-2.0
"""A graph may grow while its stages run; the stages do not change."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import smart_stage_sessions


def test_new_nodes_do_not_change_a_running_stage():
  record = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next()
  double = record * 2
  variable = tf.get_variable("variable", initializer=np.int64(1000))
  result = double + variable
  with smart_stage_sessions.smart_stage_session(capacity=3) as sess:
    assert sess.run(result) == 1000
    assert sess.run([result, double + 1]) == [1002, 3]
    assert sess.run([result, tf.square(variable)]) == [1004, 1000000]
    assert sess.run(record + variable) == 1003
    assert sess.run([result, tf.negative(tf.square(record))]) == [1008, -16]


def _grown_by_an_iterator(_, variable):
  other = tf.data.make_one_shot_iterator(tf.data.Dataset.range(500, 600)).get_next()
  return other * 3 + variable, 2500


def _grown_by_a_second_reader(iterator, variable):
  return iterator.get_next() * 0 + variable, 1000


@pytest.mark.parametrize("grow", [_grown_by_an_iterator, _grown_by_a_second_reader])
def test_a_second_start_of_the_hook_runs_the_same_stages(grow):
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100))
  variable = tf.get_variable("variable", initializer=np.int64(1000))
  result = iterator.get_next() * 2 + variable
  hook = tf.make_prefetch_hook()
  with tf.Session(config=smart_stage_sessions.smart_stage_config()) as sess:
    sess.run(variable.initializer)
    with hook.running(sess):
      assert sess.run(result) == 1000
    new, expected = grow(iterator, variable)
    with hook.running(sess):
      values = [sess.run(result) for _ in range(10)]
      assert values == sorted(set(values))
      assert sess.run(new) == expected


@pytest.mark.parametrize("distributed", [False, True])
def test_a_hook_that_comes_late_runs_the_stages_that_the_session_has(distributed):
  """A step without the hook fails, but from then on the stages are fixed, whatever is added to the graph."""
  result = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next() * 2 + tf.get_variable(
      "variable", initializer=np.int64(1000))
  target = tf.train.Server.create_local_server().target if distributed else ""
  with tf.Session(target, config=smart_stage_sessions.smart_stage_config()) as sess:
    sess.run(tf.global_variables_initializer())
    with pytest.raises(tf.errors.FailedPreconditionError, match="make_prefetch_hook"):
      sess.run(result)
    other = tf.data.make_one_shot_iterator(tf.data.Dataset.range(500, 600)).get_next() * 3 + result
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(result) == 1000
      assert sess.run(other) == 2502


@pytest.mark.parametrize("distributed", [False, True])
def test_a_hook_that_found_nothing_to_run_lets_steps_compute_everything(distributed):
  record = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next() * 2
  target = tf.train.Server.create_local_server().target if distributed else ""
  with tf.Session(target, config=smart_stage_sessions.smart_stage_config()) as sess:
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(record) == 0
      result = record + tf.get_variable("variable", initializer=np.int64(1000))
      sess.run(tf.global_variables_initializer())
      assert sess.run(result) == 1002
    # The next start runs what the program stages itself.
    staged = tf.staged(tf.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next())
    with tf.make_prefetch_hook().running(sess):
      assert sess.run([result, staged]) == [1004, 0]


def test_a_stage_added_to_a_running_graph_needs_another_name():
  double = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next() * 2
  result = double + tf.get_variable("variable", initializer=np.int64(1000))
  with smart_stage_sessions.smart_stage_session() as sess:
    assert sess.run(result) == 1000
    tf.staged(double)
    with pytest.raises(tf.errors.AlreadyExistsError, match="'prefetch/TensorBuffer.*SmartStageOptions"):
      sess.run(result)
