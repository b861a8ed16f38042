# SPDX-License-Identifier: Apache-2.0
"""`tensorflow_staging.SmartStage` with tf_keras, in a process of its own: `tf.keras` is one Keras only."""

import os
import subprocess
import sys

_PROGRAM = """
import numpy as np
import tensorflow as tf
import tensorflow_staging

def fit(callbacks, several):
  tf.keras.utils.set_random_seed(1)
  words = tf.keras.Input((), dtype=tf.string)
  ids = tf.keras.layers.Hashing(100)(words)
  model = tf.keras.Model(words, tf.keras.layers.Dense(1)(tf.keras.layers.Embedding(100, 4)(ids)))
  model.compile("adam", "mse", steps_per_execution=several)
  data = tf.data.Dataset.from_tensor_slices((list("abcdefgh") * 8, np.arange(64.0))).batch(4)
  history = model.fit(data, epochs=3, verbose=0, callbacks=callbacks, validation_data=data.take(3)).history
  return history, model.get_weights()

for several in (1, 3):
  callback = tensorflow_staging.SmartStage()
  history, weights = fit([callback], several)
  expected, expected_weights = fit([], several)
  assert history == expected, (history, expected)
  assert all((one == other).all() for one, other in zip(weights, expected_weights))
  assert [stage.taken for stage in tensorflow_staging.stats(callback) if stage.name == "train"] == [48]
print("the same", tf.keras.Model.__module__)
"""


def test_losses_and_weights_are_those_without_the_callback():
  done = subprocess.run(
      [sys.executable, "-B", "-c", _PROGRAM], capture_output=True, text=True, timeout=100, check=False,
      env={**os.environ, "TF_USE_LEGACY_KERAS": "1"})
  assert done.returncode == 0, done.stderr
  assert done.stdout.startswith("the same tf_keras.")
