# SPDX-License-Identifier: Apache-2.0
"""Training under TensorFlow 2 that kills itself in the middle of an epoch, and resumes; killed_fit_test.py runs it.

Usage: killed_fit.py KIND without|plain|staged FOLDER KILLED_AFTER

A kind is one of:

  fit     Keras's `fit` with its BackupAndRestore, every few batches.
  finite, endless, unknown    `fit` with tf.staging.BackupAndRestore, every few batches, and data of such a length. It
          writes a line for each step to FOLDER.steps.
  mirrored, one_device    The same under a strategy of `tf.distribute`; mirrored on two CPUs, one of which has nothing
          to do in the last step of an epoch.
  loop    A loop of its own, whose checkpoints have the iterator. Its step fails unless the n-th element comes n-th.

  without    No backups.
  staged     With a stage.

After KILLED_AFTER steps of this process it is killed; 0 stands for never. Then it prints what has come of the training.
"""

import json
import os
import signal
import sys

import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)  # Sums in one order.
_ROWS = 48
_STEPS_PER_CHECKPOINT = 5
_STEPS_PER_BACKUP = 4


def _kill_self() -> None:
  os.kill(os.getpid(), signal.SIGKILL)


def _fit(staged: bool, folder: str, killed_after: int) -> dict:
  tf.keras.utils.set_random_seed(5)
  random = np.random.RandomState(0)
  words, targets = random.choice(list("abcdefg"), [_ROWS, 3]), random.rand(_ROWS, 1).astype(np.float32)
  data = tf.data.Dataset.from_tensor_slices((words, targets)).batch(4)
  layers = tf.keras.layers
  inputs = tf.keras.Input((3,), dtype=tf.string)
  counts = layers.StringLookup(vocabulary=list("abcde"), output_mode="count")(inputs)
  # It draws ahead.
  outputs = layers.Dense(1)(layers.Dense(4, "relu")(layers.GaussianNoise(0.1)(layers.Rescaling(0.5)(counts))))
  model = tf.keras.Model(inputs, outputs)
  model.compile("adam", "mse")
  steps = 0

  class Kill(tf.keras.callbacks.Callback):

    def on_train_batch_end(self, batch, logs=None):
      nonlocal steps
      steps += 1
      if steps == killed_after:
        _kill_self()

  callbacks = [tf.keras.callbacks.BackupAndRestore(folder, save_freq=_STEPS_PER_CHECKPOINT), Kill()]
  if staged:
    callbacks.append(tf.staging.SmartStage())
  history = model.fit(data, epochs=3, verbose=0, callbacks=callbacks).history
  return {"steps": steps, "history": history, "weights": [w.tolist() for w in model.get_weights()]}


class _Order(tf.keras.metrics.Metric):
  """A number that says which records the steps of an epoch had, and in which order."""

  def __init__(self):
    super().__init__(name="order")
    self.order = self.add_weight(name="order", shape=(), initializer="zeros")

  def update_state(self, y_true, y_pred, sample_weight=None):
    rows = tf.cast(y_true, tf.float32)[:, 0] * _ROWS
    places = tf.range(1, tf.shape(rows)[0] + 1)
    # Small enough to be exact.
    self.order.assign((self.order * 31 + tf.reduce_sum(rows * tf.cast(places, tf.float32))) % 65521)

  def result(self):
    return self.order + 0


def _strategy(length: str) -> tf.distribute.Strategy:
  if length == "mirrored":
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
  return tf.distribute.OneDeviceStrategy("CPU:0") if length == "one_device" else tf.distribute.get_strategy()


def _model():
  """Returns a model with preprocessing that draws ahead, and metrics."""
  layers = tf.keras.layers
  inputs = tf.keras.Input((3,), dtype="string")
  counts = layers.StringLookup(vocabulary=list("abcde"), output_mode="count")(inputs)
  outputs = layers.Dense(1)(layers.Dense(4, "relu")(layers.GaussianNoise(0.1)(layers.Rescaling(0.5)(counts))))
  model = tf.keras.Model(inputs, outputs)
  model.compile("adam", "mse", metrics=[_Order()])
  return model


def _exact(length: str, stage: str, folder: str, killed_after: int) -> dict:
  strategy = _strategy(length)
  if hasattr(tf.keras.backend, "experimental"):
    # Keras 2's other random numbers are those of kernels, whose states nothing can save.
    tf.keras.backend.experimental.enable_tf_random_generator()
  tf.keras.utils.set_random_seed(5)
  words = np.random.RandomState(0).choice(list("abcdefg"), [_ROWS, 3])
  rows = tf.data.Dataset.from_tensor_slices((words, np.arange(_ROWS, dtype=np.float32)[:, None] / _ROWS))
  data = rows.shuffle(20, seed=7)
  data = {"endless": data.repeat(), "unknown": data.filter(lambda *_: True)}.get(length, data)
  data = data.batch(5 if length == "mirrored" else 4)
  with strategy.scope():
    model = _model()
  steps = 0

  class Tell(tf.keras.callbacks.Callback):
    epoch = 0

    def on_epoch_begin(self, epoch, logs=None):
      self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
      nonlocal steps
      steps += 1
      with open(f"{folder}.steps", "a") as file:
        print(json.dumps([self.epoch, batch, *(float(logs[name]) for name in ("order", "loss"))]), file=file)
      if steps == killed_after:
        _kill_self()

  callbacks = [Tell()]
  if stage != "without":
    callbacks.insert(0, tf.staging.BackupAndRestore(folder, save_freq=_STEPS_PER_BACKUP))
  if stage == "staged":
    callbacks.append(tf.staging.SmartStage())
  history = model.fit(
      data, epochs=3, verbose=0, callbacks=callbacks, steps_per_epoch=8 if length == "endless" else None,
      validation_data=rows.batch(5).take(2)).history
  if stage == "staged":
    assert all(step.why_not is None for step in callbacks[-1].steps())
  return {
      "steps": steps, "last": {name: values[-1] for name, values in history.items()},
      "weights": [w.tolist() for w in model.get_weights()]}


def _loop(staged: bool, folder: str, killed_after: int) -> dict:
  generator = tf.random.Generator.from_seed(3)
  count, total = tf.Variable(0, dtype=tf.int64), tf.Variable(0.0)

  @tf.function
  def step(iterator):
    number = tf.strings.to_number(next(iterator), tf.int64)
    tf.debugging.assert_equal(number, count.read_value())
    count.assign_add(1)
    total.assign_add(tf.reduce_sum(generator.uniform([number % 3 + 1])))

  if staged:
    step = tf.staging.ahead(step, capacity=8)
  iterator = iter(tf.data.Dataset.range(_ROWS).map(tf.strings.as_string).prefetch(3))
  manager = tf.train.CheckpointManager(
      tf.train.Checkpoint(count=count, total=total, generator=generator, iterator=iterator), folder, max_to_keep=2)
  manager.restore_or_initialize()
  resumed_at = int(count)
  for steps in range(1, _ROWS + 2):
    try:
      step(iterator)
    except tf.errors.OutOfRangeError:
      break
    if steps % _STEPS_PER_CHECKPOINT == 0:
      manager.save()
    if steps == killed_after:
      _kill_self()
  state = generator.state.numpy().tolist()
  return {"resumed_at": resumed_at, "count": int(count), "total": float(total), "state": state}


if __name__ == "__main__":
  _kind, _stage, _folder, _killed_after = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
  if _kind in ("fit", "loop"):
    _result = {"fit": _fit, "loop": _loop}[_kind](_stage == "staged", _folder, _killed_after)
  else:
    _result = _exact(_kind, _stage, _folder, _killed_after)
  print(json.dumps(_result), flush=True)
