# SPDX-License-Identifier: Apache-2.0
"""A worker of `MultiWorkerMirroredStrategy` that trains on GPUs; gpu_worker_cases.py runs two of them.

Usage: gpu_workers.py GPUS without|with...

Trains on so many fake GPUs, or on a CPU if there is none, without stages or with them, and prints the values as JSON.
"""

import contextlib
import json
import sys

import fake_gpus
import numpy as np
import tensorflow as tf

layers = tf.keras.layers
_LETTERS = list("abcdefg")


def _check(step, strategy):
  """Checks that a step has a stage on the host, and its record on each GPU."""
  assert step.why_not is None, step.why_not
  for _, division in step._divisions.values():
    ahead = division.definition_ahead
    assert "IteratorGetNext" in ahead and "device:CPU:0" in ahead, ahead
    assert "GPU" not in ahead and "Collective" not in ahead, ahead
    assert {device for device, _ in division.destinations} == set(strategy.extended.worker_devices)


def _looped(strategy, is_staged, *, is_several):
  """Trains in a loop with ragged strings, of which the first worker has more; returns its values.

  Args:
    strategy: The strategy.
    is_staged: Whether the step has a stage.
    is_several: Whether a call of the step makes two.
  """
  index = strategy.cluster_resolver.task_id
  with strategy.scope():
    counts = tf.Variable(tf.zeros([50]))

  def train(pieces):
    ids = tf.strings.to_hash_bucket_fast(pieces.values, 50)
    total = tf.distribute.get_replica_context().all_reduce("sum", tf.reduce_sum(tf.one_hot(ids, 50), 0))
    counts.assign_add(total)
    return tf.reduce_sum(counts * tf.range(50.0)), tf.size(ids)

  def one_step(iterator):
    return strategy.run(train, args=(next(iterator),))

  def two_steps(iterator):
    for _ in tf.range(2):
      one_step(iterator)
    return counts.read_value(), tf.constant(0)

  step = tf.function(two_steps if is_several else one_step)
  step = tf.staging.ahead(step) if is_staged else step
  words = tf.data.Dataset.from_tensor_slices(["ab", "c", "def", "gh", "i", "j", "kl", "m"][4 * index:])
  # TensorFlow cannot copy such strings to a GPU.
  options = tf.distribute.InputOptions(experimental_fetch_to_device=is_staged)
  distributed = strategy.distribute_datasets_from_function(
      lambda _: words.map(tf.strings.bytes_split).ragged_batch(1), options)
  values = []
  for _ in range(2):
    iterator = iter(distributed)
    with contextlib.suppress(tf.errors.OutOfRangeError):
      while True:
        results = map(strategy.experimental_local_results, step(iterator))
        values.append([[v.numpy().tolist() for v in result] for result in results])
  if is_staged:
    _check(step, strategy)
  return values


def _fitted(strategy, is_staged, **options):
  """Trains a model that looks words up, with data that ends in a step for some replicas only; returns its values."""
  callbacks = [tf.staging.SmartStage()] if is_staged else []
  tf.keras.backend.clear_session()
  tf.keras.utils.set_random_seed(5)
  random = np.random.RandomState(0)
  words, targets = random.choice(_LETTERS, [41, 3]), random.rand(41, 1).astype(np.float32)
  texts = [" ".join(row) for row in words]

  def data(rows):
    slices = tf.data.Dataset.from_tensor_slices(((words[:rows], texts[:rows]), targets[:rows]))
    return slices.shuffle(16, seed=3).batch(8)

  with strategy.scope():
    inputs = [tf.keras.Input((3,), dtype=tf.string), tf.keras.Input((), dtype=tf.string)]
    known = layers.StringLookup(vocabulary=_LETTERS, output_mode="multi_hot")(inputs[0])
    counts = layers.TextVectorization(vocabulary=_LETTERS, output_mode="count")(inputs[1])
    model = tf.keras.Model(inputs, layers.Dense(1)(layers.Concatenate()([known, counts])))
    model.compile(tf.keras.optimizers.SGD(0.1), "mse", metrics=["mae"], **options)
  history = model.fit(data(41), epochs=2, validation_data=data(17), verbose=0, callbacks=callbacks).history
  scores = model.evaluate(data(25), verbose=0, callbacks=callbacks)
  for callback in callbacks:
    assert callback._steps.keys() == {"train_function", "test_function"}
    for step in callback.steps():
      _check(step, strategy)
  return history, scores, [w.numpy().tolist() for w in model.weights]


def _main(gpus, *ways):
  if gpus:
    fake_gpus.load(gpus)
  tf.config.threading.set_intra_op_parallelism_threads(1)  # Sums in one order.
  strategy = tf.distribute.MultiWorkerMirroredStrategy()
  kinds = [tf.DeviceSpec.from_string(name).device_type for name in strategy.extended.worker_devices]
  assert kinds == (["GPU"] * gpus or ["CPU"]), kinds
  printed = []
  for way in ways:
    is_staged = way == "with"
    loops = [_looped(strategy, is_staged, is_several=is_several) for is_several in (False, True)]
    # One step in a call with one GPU, several with several.
    printed.append([*loops, _fitted(strategy, is_staged, steps_per_execution=gpus or 1)])
  print(json.dumps(printed))


if __name__ == "__main__":
  _main(int(sys.argv[1]), *sys.argv[2:])
