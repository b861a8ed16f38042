# SPDX-License-Identifier: Apache-2.0
"""Training under TensorFlow 2 that kills itself in the middle of an epoch, and resumes; killed_fit_test.py runs it.

Usage: killed_fit.py fit|loop plain|staged FOLDER KILLED_AFTER

  fit     Keras's `fit` with BackupAndRestore, every few batches.
  loop    A loop of its own, whose checkpoints have the iterator. Its step fails unless the n-th element comes n-th.

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
  outputs = layers.Dense(1)(layers.Dense(4, "relu")(layers.GaussianNoise(0.1)(counts)))
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
  _of = {"fit": _fit, "loop": _loop}[sys.argv[1]]
  print(json.dumps(_of(sys.argv[2] == "staged", sys.argv[3], int(sys.argv[4]))), flush=True)
