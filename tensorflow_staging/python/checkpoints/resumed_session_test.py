# SPDX-License-Identifier: Apache-2.0
"""Monitored sessions and Estimators resume with exactly the next record."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util


class _FailOnce(tf.train.SessionRunHook):
  """Raises the error of a lost worker, once, after some steps."""

  def __init__(self, steps: int):
    self._steps_left = steps

  def after_run(self, run_context, run_values):
    self._steps_left -= 1
    if self._steps_left == 0:
      raise tf.errors.AbortedError(None, None, "preempted")


def _train(folder, steps, *hooks, scaffold=False, smart_stage=True):
  """Trains for some steps in a graph of its own; returns the numbers that these took."""
  with tf.Graph().as_default():
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(1000))
    if not scaffold:
      tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    number = iterator.get_next() * 1
    variable = tf.get_variable("v", initializer=tf.zeros([], tf.int64))
    with tf.control_dependencies([tf.assign_add(variable, number)]):
      step = tf.group(tf.assign_add(tf.train.get_or_create_global_step(), 1))
    tf.staging.save_iterators()
    taken = []
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(folder), config=smart_stage_sessions.smart_stage_config(capacity=5) if smart_stage else None,
        scaffold=tf.train.Scaffold(local_init_op=iterator.initializer) if scaffold else None,
        hooks=[tf.make_prefetch_hook(), *hooks] if smart_stage else hooks,
        save_checkpoint_steps=3, save_checkpoint_secs=None, save_summaries_steps=None) as sess:
      for _ in range(steps):
        taken.append(int(sess.run([number, step])[0]))
  return taken


@pytest.mark.parametrize("smart_stage", [False, True], ids=["no_stage", "smart_stage"])
@pytest.mark.parametrize("scaffold", [False, True], ids=["initialised_with_tables", "initialised_by_the_scaffold"])
def test_a_monitored_training_session_resumes(scaffold, smart_stage, tmp_path):
  taken = []
  for steps in (4, 1, 7):
    taken += _train(tmp_path, steps, scaffold=scaffold, smart_stage=smart_stage)
  assert taken == list(range(12))


@pytest.mark.parametrize("new_saver", [False, True], ids=["imported_saver", "new_saver"])
def test_a_session_with_an_imported_graph_resumes(new_saver, tmp_path):
  taken = _train(tmp_path, 5)
  tf.train.import_meta_graph(tf.train.latest_checkpoint(tmp_path) + ".meta")
  with tf.train.MonitoredTrainingSession(
      checkpoint_dir=str(tmp_path), config=smart_stage_sessions.smart_stage_config(capacity=5),
      scaffold=tf.train.Scaffold(saver=tf.train.Saver()) if new_saver else None,
      hooks=[tf.make_prefetch_hook()]) as sess:
    for _ in range(5):
      taken.append(int(sess.run(["mul:0", "group_deps"])[0]))
  assert taken == list(range(10))


def test_a_session_that_recovers_continues_from_the_checkpoint(tmp_path):
  # Checkpoints come after 0, 3 and 6 steps; the error replaces the result of the fifth step.
  taken = _train(tmp_path, 9, _FailOnce(steps=5))
  assert taken == [0, 1, 2, 3, 3, 4, 5, 6, 7]


class _InitialiseAfterTheStages(tf.train.SessionRunHook):
  """Initialises an iterator when the hooks before this one have started the stages, which have read it."""

  def __init__(self, initializer):
    self._initializer = initializer

  def after_create_session(self, session, coord):
    test_util.wait_until(lambda: all(stage.waiting_puts == 1 for stage in tf.staging.stats(session)))
    session.run(self._initializer)


@pytest.mark.parametrize("smart_stage", [False, True], ids=["manual", "smart_stage"])
def test_a_hook_that_initialises_when_the_stages_have_read_what_was_restored(smart_stage, tmp_path):
  taken = []
  for _ in range(3):
    with tf.Graph().as_default():
      iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(1000))
      number = iterator.get_next() * 1
      if not smart_stage:
        number = tf.staged(number, capacity=3)
      variable = tf.get_variable("v", initializer=tf.zeros([], tf.int64))
      step = tf.group(tf.assign_add(variable, number), tf.assign_add(tf.train.get_or_create_global_step(), 1))
      tf.staging.save_iterators()
      hooks = [tf.make_prefetch_hook(), _InitialiseAfterTheStages(iterator.initializer)]
      with tf.train.MonitoredTrainingSession(
          checkpoint_dir=str(tmp_path), hooks=hooks,
          config=smart_stage_sessions.smart_stage_config(capacity=3) if smart_stage else None) as sess:
        taken += [int(sess.run([number, step])[0]) for _ in range(4)]
  assert taken == list(range(12))


def _input_fn():
  return tf.data.Dataset.range(1000).map(lambda n: {"n": n[tf.newaxis]})


def _model_fn(features, mode, params):
  taken = tf.get_variable("taken", initializer=tf.zeros([100], tf.int64), trainable=False)
  count = tf.get_variable("count", initializer=tf.zeros([], tf.int64), trainable=False)
  number = features["n"][0] * 1
  params["save"]()
  train_op = tf.group(
      tf.scatter_update(taken, tf.cast(tf.train.get_global_step(), tf.int32), number), tf.assign_add(count, number))
  with tf.control_dependencies([train_op]):
    train_op = tf.assign_add(tf.train.get_global_step(), 1)
  return tf.estimator.EstimatorSpec(mode, loss=tf.cast(number, tf.float32), train_op=train_op)


def _estimator(folder, save) -> tf.estimator.Estimator:
  run_config = tf.estimator.RunConfig(
      session_config=smart_stage_sessions.smart_stage_config(capacity=4), save_checkpoints_steps=2)
  return tf.estimator.Estimator(_model_fn, model_dir=str(folder), config=run_config, params={"save": save})


def test_an_estimator_resumes(tmp_path):
  for steps in (3, 4, 1):
    estimator = _estimator(tmp_path, tf.staging.save_iterators)
    estimator.train(_input_fn, hooks=[tf.make_prefetch_hook()], steps=steps)
  assert list(estimator.get_variable_value("taken")[:8]) == list(range(8))


def test_tensorflows_own_hook_saves_the_records_too(tmp_path):
  for steps in (3, 4, 1):
    estimator = _estimator(tmp_path, lambda: None)
    hook = tf.data.experimental.CheckpointInputPipelineHook(estimator)
    estimator.train(_input_fn, hooks=[tf.make_prefetch_hook(), hook], steps=steps)
  assert list(estimator.get_variable_value("taken")[:8]) == list(range(8))
