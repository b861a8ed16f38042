# SPDX-License-Identifier: Apache-2.0
"""Runs steps under `MirroredStrategy` whose strings are looked up ahead of them, and checks the values.

gpu_mirrored_test.py starts it with TensorFlow 2's API: mirrored_steps.py DEVICE. The replicas are on the first two
GPUs if the device is a GPU; otherwise on two CPUs, to try the program.
"""

import sys

import numpy as np
import tensorflow as tf

_LETTERS = list("abcdefg")
_STEPS = 40


def _strategy(device: str) -> tf.distribute.Strategy:
  if "gpu" in device:
    return tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])
  cpu, = tf.config.list_physical_devices("CPU")
  tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
  return tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])


def _check(strategy: tf.distribute.Strategy) -> None:
  lookup = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(_LETTERS, tf.range(7, dtype=tf.int64)), -1)
  with strategy.scope():
    counts = tf.Variable(tf.zeros([7]), aggregation=tf.VariableAggregation.SUM)

  def train(words):
    # Small whole numbers, so sums are exact in any order.
    counts.assign_add(tf.reduce_sum(tf.one_hot(lookup.lookup(words), 7), 0))

  step = tf.staging.ahead(tf.function(lambda iterator: strategy.run(train, args=(next(iterator),))))
  words = tf.data.Dataset.from_tensor_slices(_LETTERS).repeat().batch(4, drop_remainder=True)
  iterator = iter(strategy.distribute_datasets_from_function(lambda _: words))
  for _ in range(_STEPS):
    step(iterator)
  if step.why_not is not None:
    raise AssertionError(f"The step is not staged: {step.why_not}.")
  wanted = np.bincount(np.arange(_STEPS * 2 * 4) % 7, minlength=7)
  for value in strategy.experimental_local_results(counts):
    np.testing.assert_array_equal(value.numpy(), wanted)


if __name__ == "__main__":
  _check(_strategy(sys.argv[1]))
  print("right", flush=True)
