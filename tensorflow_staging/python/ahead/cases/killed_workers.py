# SPDX-License-Identifier: Apache-2.0
"""A worker of `MultiWorkerMirroredStrategy` that resumes with stages; killed_worker_cases.py runs two of them.

Usage: killed_workers.py loop|fit|end FOLDER

  loop    Trains in a loop of its own with checkpoints, until the second worker is killed.
  fit     Resumes that, and then trains in `fit` with backups, until the second worker is killed.
  end     Resumes the `fit`, in the middle of an epoch.

A worker has two replicas. What resumes ends with the values of the same training without a stage that is never killed.
The first worker ends with the status `LOST` when the second one is killed.
"""

import os
import signal
import sys

import tensorflow as tf

LOST = 3
_STEPS = 9
_STEPS_PER_CHECKPOINT = 3
# Between two checkpoints.
_KILLED_AFTER = 5
# Epoch and step of a `fit`. The backup of two steps before has been written.
_KILLED_AT = (1, 3)
_STEPS_PER_BACKUP = 2


def _kill_second(strategy):
  if strategy.cluster_resolver.task_id == 1:
    os.kill(os.getpid(), signal.SIGKILL)


def _loop(strategy, wrap, folder="", is_killed=False):
  """Trains in a loop; returns what its steps since the last checkpoint have returned, and the weights."""
  index = strategy.cluster_resolver.task_id
  with strategy.scope():
    counts = tf.Variable(tf.zeros([50]))

  def train(words):
    ids = tf.strings.to_hash_bucket_fast(words, 50)
    counts.assign_add(tf.distribute.get_replica_context().all_reduce("sum", tf.reduce_sum(tf.one_hot(ids, 50), 0)))
    return tf.reduce_sum(counts * tf.range(50.0))

  step = wrap(tf.function(lambda iterator: strategy.run(train, args=(next(iterator),))))
  words = tf.constant([f"{index} {i}" for i in range(2 * _STEPS)])
  # A checkpoint can have an iterator of tf.data, and none of a strategy.
  iterator = iter(tf.data.Dataset.from_tensor_slices(words).shuffle(8, seed=index).batch(2))
  done = tf.Variable(0)
  checkpoint = tf.train.Checkpoint(counts=counts, iterator=iterator, done=done)
  latest = folder and tf.train.latest_checkpoint(f"{folder}/{index}")
  if latest:
    checkpoint.restore(latest).assert_consumed()
  values = []
  for at in range(int(done), _STEPS):
    if is_killed and at == _KILLED_AFTER:
      _kill_second(strategy)
    values.append(float(step(iterator)))
    done.assign_add(1)
    if folder and int(done) % _STEPS_PER_CHECKPOINT == 0:
      checkpoint.save(f"{folder}/{index}/checkpoint")
  return values, counts.numpy().tolist()


def _fit(strategy, callbacks, folder="", is_killed=False):
  """Trains in `fit`; returns the place and the metrics of the steps since the last backup, and the weights."""
  tf.keras.backend.clear_session()
  tf.keras.backend.experimental.enable_tf_random_generator()
  tf.keras.utils.set_random_seed(5)
  layers = tf.keras.layers
  with strategy.scope():
    words = tf.keras.Input((), dtype=tf.string)
    hidden = layers.Dropout(0.3)(layers.BatchNormalization()(layers.Embedding(50, 4)(layers.Hashing(50)(words))))
    model = tf.keras.Model(words, layers.Dense(1)(hidden))
    model.compile("adam", "mse", metrics=["mae"])
  # The replicas of a worker have different numbers of steps.
  rows = tf.data.Dataset.range(41).map(lambda i: (tf.strings.as_string(i), tf.cast(i % 7, tf.float32)))
  steps = []
  epoch = 0

  class Kill(tf.keras.callbacks.Callback):

    def on_epoch_begin(self, at, logs=None):
      nonlocal epoch
      epoch = at

    def on_train_batch_end(self, batch, logs=None):
      steps.append(((epoch, batch), logs["loss"], logs["mae"]))
      if is_killed and (epoch, batch) == _KILLED_AT:
        _kill_second(strategy)

  callbacks = [*callbacks, Kill()]
  if folder:
    callbacks.append(tf.staging.BackupAndRestore(f"{folder}/fit", save_freq=_STEPS_PER_BACKUP))
  model.fit(rows.shuffle(9, seed=3).batch(8), epochs=3, verbose=0, callbacks=callbacks)
  return steps, [w.numpy().tolist() for w in model.weights]


def _check_end(got, expected):
  """Checks that what has resumed has done the last part of what was never killed."""
  (values, weights), (all_values, all_weights) = got, expected
  assert 0 < len(values) < len(all_values), "It has begun anew."
  assert values == all_values[-len(values):], (values, all_values)
  assert weights == all_weights


def _main(what, folder):
  tf.config.threading.set_intra_op_parallelism_threads(1)  # Sums in one order.
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
  strategy = tf.distribute.MultiWorkerMirroredStrategy()
  staged = {"wrap": tf.staging.ahead, "folder": folder}
  if what == "loop":
    _loop(strategy, **staged, is_killed=True)
  if what == "fit":
    _check_end(_loop(strategy, **staged), _loop(strategy, lambda step: step))
  if what in ("fit", "end"):
    callback = tf.staging.SmartStage()
    fitted = _fit(strategy, [callback], folder, is_killed=what == "fit")
    assert all(step.why_not is None for step in callback.steps())
    first_place, *_ = fitted[0][0]
    assert first_place == (_KILLED_AT[0], _KILLED_AT[1] - 1), first_place
    _check_end(fitted, _fit(strategy, []))


if __name__ == "__main__":
  try:
    _main(*sys.argv[1:])
  except tf.errors.UnavailableError:
    sys.exit(LOST)
