# SPDX-License-Identifier: Apache-2.0
"""Towers of a session on two GPUs of one machine."""

import numpy as np
import pytest
import staged_runs
import tensorflow as tf

_BATCH = 8


@pytest.mark.parametrize("way", staged_runs.WAYS)
def test_each_tower_gets_its_half_of_a_record(devices, way):
  numbers = tf.data.Dataset.range(10_000).batch(_BATCH, drop_remainder=True)
  number = tf.compat.v1.data.make_one_shot_iterator(numbers).get_next()
  with tf.device("/cpu:0"):
    halves = [tf.cast(half % 7, tf.float32) for half in tf.split(number, 2)]
  outputs = []
  for index, (device, half) in enumerate(zip(devices, staged_runs.staged(way, halves), strict=True)):
    with tf.device(device):
      outputs.append(half * tf.get_variable(f"weight_{index}", initializer=index + 2.0))
  for step, got in enumerate(staged_runs.values(outputs, staged_runs.config(way, True))):
    wanted = np.arange(step * _BATCH, (step + 1) * _BATCH) % 7
    np.testing.assert_array_equal(np.concatenate(got), wanted * np.repeat([2, 3], _BATCH // 2), err_msg=f"step {step}")
