# SPDX-License-Identifier: Apache-2.0
"""An Estimator trains, evaluates and predicts with the hook on staged input."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util

_ROWS = 32
_BATCH = 4


def _input_fn():
  x = tf.cast(tf.range(_ROWS), tf.float32) / _ROWS
  dataset = tf.data.Dataset.from_tensor_slices(({"x": x}, 2.0 * x)).batch(_BATCH)
  return tf.staged(tf.data.make_one_shot_iterator(dataset).get_next(), capacity=2, num_threads=2)


def _model_fn(features, labels, mode):
  weight = tf.get_variable("weight", initializer=0.0)
  prediction = weight * features["x"]
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf.estimator.EstimatorSpec(mode, predictions={"x": features["x"], "y": prediction})
  loss = tf.losses.mean_squared_error(labels, prediction)
  train_op = tf.train.GradientDescentOptimizer(0.5).minimize(loss, tf.train.get_global_step())
  metrics = {"rows": tf.metrics.mean(tf.cast(tf.size(labels), tf.float32))}
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def test_train_and_evaluate(tmp_path):
  estimator = tf.estimator.Estimator(_model_fn, model_dir=str(tmp_path))
  hook = tf.make_prefetch_hook()
  before = None
  for epoch in range(1, 4):
    estimator.train(_input_fn, hooks=[hook])
    result = estimator.evaluate(_input_fn, hooks=[hook])
    assert result["global_step"] == epoch * _ROWS // _BATCH
    assert result["rows"] == _BATCH
    assert before is None or result["loss"] < before
    before = result["loss"]


def _ordered_input_fn():
  x = tf.cast(tf.range(_ROWS), tf.float32)
  dataset = tf.data.Dataset.from_tensor_slices({"x": x}).batch(_BATCH)
  return tf.staged(tf.data.make_one_shot_iterator(dataset).get_next(), capacity=2)


def _trained(folder) -> tf.estimator.Estimator:
  estimator = tf.estimator.Estimator(_model_fn, model_dir=str(folder))
  return estimator.train(_input_fn, hooks=[tf.make_prefetch_hook()])


def test_predict_with_the_hook(tmp_path):
  estimator = _trained(tmp_path)
  weight = estimator.get_variable_value("weight")
  predictions = list(estimator.predict(_ordered_input_fn, hooks=[tf.make_prefetch_hook()]))
  assert [prediction["x"] for prediction in predictions] == list(range(_ROWS))
  assert [prediction["y"] for prediction in predictions] == pytest.approx([weight * x for x in range(_ROWS)])


def test_predict_stops_the_stage_when_its_generator_is_closed(tmp_path):
  predictions = _trained(tmp_path).predict(_ordered_input_fn, hooks=[tf.make_prefetch_hook()])
  assert next(predictions)["x"] == 0
  predictions.close()
  test_util.assert_no_stage_thread()


def test_predict_without_the_hook_names_it(tmp_path):
  with pytest.raises(tf.errors.FailedPreconditionError, match="'prefetch'.*tf.make_prefetch_hook"):
    next(_trained(tmp_path).predict(_ordered_input_fn))


def test_predict_with_smart_stage(tmp_path):

  def input_fn():
    dataset = tf.data.Dataset.from_tensor_slices({"x": tf.cast(tf.range(_ROWS), tf.float32)}).batch(_BATCH)
    return tf.data.make_one_shot_iterator(dataset).get_next()

  def model_fn(features, mode):
    number = tf.identity(features["x"])
    tf.train.mark_target_node([number])
    weight = tf.get_variable("weight", initializer=2.0)
    return tf.estimator.EstimatorSpec(mode, predictions={"x": number, "y": weight * tf.square(features["x"])})

  _trained(tmp_path)
  config = smart_stage_sessions.smart_stage_config(capacity=2)
  estimator = tf.estimator.Estimator(
      model_fn, model_dir=str(tmp_path), config=tf.estimator.RunConfig(session_config=config))
  weight = estimator.get_variable_value("weight")
  predictions = list(estimator.predict(input_fn, hooks=[tf.make_prefetch_hook()]))
  assert [prediction["x"] for prediction in predictions] == list(range(_ROWS))
  assert [prediction["y"] for prediction in predictions] == pytest.approx([weight * x**2 for x in range(_ROWS)])
  with pytest.raises(tf.errors.FailedPreconditionError, match="'prefetch'.*tf.make_prefetch_hook"):
    next(estimator.predict(input_fn))
