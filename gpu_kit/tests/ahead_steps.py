# SPDX-License-Identifier: Apache-2.0
"""Runs steps of a `tf.function` on a device with `tf.staging.ahead`, and checks the values that they compute.

gpu_ahead_test.py starts it with TensorFlow 2's API: ahead_steps.py DEVICE
"""

import sys

import numpy as np
import tensorflow as tf

_STEPS = 100
_TYPES = [tf.float32, tf.int64, tf.float64, tf.float16]
_TENSORS = 60
_SIZE = 512


def _whole_records(device: str) -> None:
  """A record goes to the GPU in one copy, whose parts have many types and sizes, also none."""
  with tf.device(device):
    factors = [tf.Variable(tf.cast(2, dtype)) for dtype in _TYPES]

  @tf.function
  def step(iterator):
    number = next(iterator)
    parts = [
        tf.fill([index * 37 % 300 + tf.cast(number % 4, tf.int32)], tf.cast((number + index) % 100, _TYPES[index % 4]))
        for index in range(_TENSORS)
    ]
    with tf.device(device):
      return [part * factors[index % 4] for index, part in enumerate(parts)]

  ahead = tf.staging.ahead(step, capacity=4)
  iterator = iter(tf.data.Dataset.range(_STEPS))
  for number in range(_STEPS):
    for index, value in enumerate(ahead(iterator)):
      wanted = np.full(index * 37 % 300 + number % 4, (number + index) % 100 * 2)
      np.testing.assert_array_equal(value.numpy(), wanted, err_msg=f"step {number}: tensor {index}")


def _records_behind_long_kernels(device: str) -> None:
  """Steps are queued on a busy GPU, so a record that is copied over an earlier one, or read too early, shows."""
  with tf.device(device):
    total = tf.Variable(tf.zeros([_SIZE], tf.float64))
    ones = tf.Variable(tf.fill([_SIZE, _SIZE], 1.0 / _SIZE))

  @tf.function
  def step(iterator):
    record = tf.fill([_SIZE, _SIZE], tf.cast(next(iterator), tf.float32))
    with tf.device(device):
      product = tf.eye(_SIZE) * ones[0, 0] * _SIZE
      for _ in range(50):
        product = tf.matmul(product, ones)
      # Rows of the product have the sum 1, and it is computed before the record is used.
      with tf.control_dependencies([product]):
        total.assign_add(tf.cast(tf.reduce_max(record * ones * _SIZE, axis=1), tf.float64))

  ahead = tf.staging.ahead(step, capacity=4)
  iterator = iter(tf.data.Dataset.range(_STEPS))
  for _ in range(_STEPS):
    ahead(iterator)
  np.testing.assert_array_equal(total.numpy(), np.full([_SIZE], _STEPS * (_STEPS - 1) / 2))


if __name__ == "__main__":
  for check in (_whole_records, _records_behind_long_kernels):
    check(sys.argv[1])
    print(f"{check.__name__.strip('_')}: right", flush=True)
