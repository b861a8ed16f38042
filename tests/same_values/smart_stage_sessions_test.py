# SPDX-License-Identifier: Apache-2.0
"""SmartStage in every kind of local session; smart_stage_server_test.py tests the sessions of a server."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import smart_stage_sessions


def _step(records=100):
  record = tf.data.make_one_shot_iterator(tf.data.Dataset.range(records)).get_next()
  hashed = tf.strings.to_number(tf.as_string(record * 2), tf.int64)
  return hashed + tf.get_variable("variable", initializer=np.int64(1000))


def test_one_hook_for_a_training_and_then_an_evaluation_session():
  result = _step(records=10)
  config = smart_stage_sessions.smart_stage_config(capacity=4, num_threads=1)
  hook = tf.make_prefetch_hook()
  for _ in range(2):
    values = []
    with tf.train.MonitoredTrainingSession(config=config, hooks=[hook]) as sess:
      while not sess.should_stop():
        values.append(sess.run(result))
    assert values == list(range(1000, 1020, 2))


def test_without_the_hook_the_error_names_the_hook():
  result = _step()
  with tf.Session(config=smart_stage_sessions.smart_stage_config()) as sess:
    sess.run(tf.global_variables_initializer())
    with pytest.raises(tf.errors.FailedPreconditionError, match="'prefetch'.*make_prefetch_hook"):
      sess.run(result)


def test_an_estimator_trains_and_evaluates(tmp_path):

  def model(features, labels, mode):
    table = tf.get_variable("table", [16, 1], initializer=tf.zeros_initializer())
    row = tf.nn.embedding_lookup(table, tf.string_to_hash_bucket_fast(features["word"], 16))
    loss = tf.losses.mean_squared_error(labels, tf.squeeze(row, 1))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

  def inputs():
    data = ({"word": ["a", "b", "c", "d"]}, [1.0, 2.0, 3.0, 4.0])
    return tf.data.Dataset.from_tensor_slices(data).batch(4).repeat(30)

  run_config = tf.estimator.RunConfig(str(tmp_path), session_config=smart_stage_sessions.smart_stage_config())
  estimator = tf.estimator.Estimator(model, config=run_config)
  estimator.train(inputs, hooks=[tf.make_prefetch_hook()])
  assert estimator.get_variable_value("global_step") == 30
  assert estimator.evaluate(inputs, hooks=[tf.make_prefetch_hook()])["loss"] < 0.1
