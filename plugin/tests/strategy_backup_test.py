# SPDX-License-Identifier: Apache-2.0
"""`tensorflow_staging.BackupAndRestore` with Keras 3 under strategies of `tf.distribute`.

Before its first step, Keras 3 adds up what the replicas have read, so this data has numbers and equal batches. With
several steps in a call, its replicas cannot use collective ops.
"""

import os
import pathlib
import subprocess
import sys

import pytest

_TESTING = pathlib.Path(__file__).parent.parent.parent / "tensorflow_staging/python/testing"

_PROGRAM = """
import tempfile

import interrupts
import keras
import numpy as np
import tensorflow as tf

import tensorflow_staging

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = {strategy}
random = np.random.RandomState(0)
rows = tf.data.Dataset.from_tensor_slices((random.rand(48, 3), random.rand(48, 1)))


def fit(callbacks):
  keras.utils.set_random_seed(3)
  with strategy.scope():
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Dropout(0.2)(keras.layers.Rescaling(0.5)(inputs))))
    model.compile("adam", "mse", metrics=["mae"], steps_per_execution={several})
  history = model.fit(rows.shuffle(20, seed=7).batch(4), epochs=3, verbose=0, callbacks=callbacks).history
  return {{name: values[-1] for name, values in history.items()}}, [weight.tolist() for weight in model.get_weights()]


expected = fit([])
with tempfile.TemporaryDirectory() as folder:
  assert fit([tensorflow_staging.BackupAndRestore(folder, 3)]) == expected
  for after in {stops}:
    staged = [tensorflow_staging.SmartStage()] if {is_staged} else []
    try:
      fit([tensorflow_staging.BackupAndRestore(folder, 3), *staged, interrupts.Interrupts(after)])
      raise AssertionError("It was not interrupted.")
    except InterruptedError:
      pass
    for callback in staged:
      assert [step.why_not for step in callback.steps()] == [None]
  assert fit([tensorflow_staging.BackupAndRestore(folder, 3)]) == expected
"""


_MIRRORED = "tf.distribute.MirroredStrategy(['CPU:0', 'CPU:1'], tf.distribute.ReductionToOneDevice())"
_ALONE = "tf.distribute.OneDeviceStrategy('CPU:0')"


@pytest.mark.parametrize("strategy, is_staged, several", [
    (_MIRRORED, False, 1), (_MIRRORED, True, 3), (_ALONE, False, 3), (_ALONE, True, 1)])
@pytest.mark.timeout(300)
def test_an_interrupted_fit_of_a_strategy_goes_on(strategy, is_staged, several):
  program = _PROGRAM.format(
      strategy=strategy, is_staged=is_staged, several=several, stops=(13, 5, 7) if several == 1 else (6, 2, 1))
  done = subprocess.run(
      [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(_TESTING)},
      timeout=200, check=False)
  assert done.returncode == 0, done.stderr[-5000:]
