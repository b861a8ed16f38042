# SPDX-License-Identifier: Apache-2.0
"""An Estimator trains and evaluates with the hook on staged input."""

import tensorflow as tf

_ROWS = 32
_BATCH = 4


def _input_fn():
  x = tf.cast(tf.range(_ROWS), tf.float32) / _ROWS
  dataset = tf.data.Dataset.from_tensor_slices(({"x": x}, 2.0 * x)).batch(_BATCH)
  return tf.staged(tf.data.make_one_shot_iterator(dataset).get_next(), capacity=2, num_threads=2)


def _model_fn(features, labels, mode):
  weight = tf.get_variable("weight", initializer=0.0)
  loss = tf.losses.mean_squared_error(labels, weight * features["x"])
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
