# SPDX-License-Identifier: Apache-2.0
"""Keras trains under both API roots as on stock TensorFlow, and on staged features."""

import pytest

from tensorflow_staging.python.testing import test_util


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_model_learns_a_line(tmp_path, version):
  output = test_util.run_program(
      """
      import numpy as np
      import tensorflow as tf

      x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(-1, 1)
      model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,), kernel_initializer="zeros")])
      model.compile(optimizer=tf.keras.optimizers.SGD(0.5), loss="mse")
      losses = model.fit(x, 3 * x + 1, epochs=20, batch_size=16, verbose=0).history["loss"]
      print(losses[-1] < 0.01 * losses[0], model.predict(x, verbose=0).shape)
      """, tmp_path, api_version=version)
  assert output == "True (64, 1)\n"


def test_a_keras_model_trains_on_staged_features():
  import numpy as np
  import tensorflow as tf

  dataset = tf.data.Dataset.from_tensor_slices(np.ones([20, 4], np.float32)).batch(2)
  x = tf.staged({"x": tf.data.make_one_shot_iterator(dataset).get_next()}, capacity=2)["x"]
  y = tf.keras.layers.Dense(1, kernel_initializer="zeros")(x)
  loss = tf.reduce_mean(tf.square(y - 1.0))
  train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
  with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
    losses = [value for value, _ in test_util.drain(sess, [loss, train_op])]
  assert len(losses) == 10
  assert losses[-1] < 0.1 * losses[0]
