# SPDX-License-Identifier: Apache-2.0
"""Several steps in a call of Keras 3 (`steps_per_execution`) under strategies of `tf.distribute`, with the callback.

Without it, too, Keras 3 trains several replicas so only if they do not communicate by collective ops.
"""

import subprocess
import sys

import pytest

_PROGRAM = """
import keras
import numpy as np
import tensorflow as tf

import tensorflow_staging

tf.config.threading.set_intra_op_parallelism_threads(1)  # Sums in one order.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
mirrored = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice())
alone = tf.distribute.OneDeviceStrategy("CPU:1")
random = np.random.RandomState(0)
# Of the last batch, one replica has nothing.
rows = tf.data.Dataset.from_tensor_slices((random.randint(0, 100, [45, 3]), random.rand(45, 1))).batch(4)
unknown = rows.filter(lambda *_: True)


def values(strategy, data, steps, callbacks):
  keras.utils.set_random_seed(3)
  with strategy.scope():
    numbers = keras.Input((3,), dtype="int64")
    embedded = keras.layers.Flatten()(keras.layers.Embedding(20, 4)(keras.layers.Hashing(20)(numbers)))
    model = keras.Model(numbers, keras.layers.Dense(1)(keras.layers.Dropout(0.2)(embedded)))
    model.compile("adam", "mse", metrics=["mae"], steps_per_execution=3)
  options = {"verbose": 0, "callbacks": callbacks}
  history = model.fit(data, epochs=2, steps_per_epoch=steps, validation_data=data.take(4), **options).history
  scores = model.evaluate(data, steps=steps, **options)
  predicted = model.predict(data.map(lambda numbers, _: numbers), steps=steps, **options)
  return history, scores, predicted.tolist(), [weight.tolist() for weight in model.get_weights()]


for strategy, data, steps in (mirrored, rows, None), (mirrored, rows.repeat(), 7), (alone, unknown, None):
  callback = tensorflow_staging.SmartStage()
  assert values(strategy, data, steps, [callback]) == values(strategy, data, steps, [])
  reasons = {name: step.why_not for name, step in callback._steps.items()}
  assert reasons == dict.fromkeys(("train_function", "test_function", "predict_function")), reasons
  for step in tensorflow_staging.explain(callback).steps:
    assert any("hashing" in node for node in step.nodes), step
"""


@pytest.mark.timeout(300)
def test_several_steps_in_a_call_under_a_strategy():
  done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=250, check=False)
  assert done.returncode == 0, done.stderr[-5000:]
