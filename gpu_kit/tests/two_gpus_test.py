# SPDX-License-Identifier: Apache-2.0
"""Two GPUs of one machine: towers in a session, and `tf.distribute.MirroredStrategy`."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import staged_runs
import tensorflow as tf

_PROGRAM = pathlib.Path(__file__).with_name("mirrored_steps.py")
_TIMEOUT_SECONDS = 100
_BATCH = 8


@pytest.fixture(name="devices")
def _devices(device) -> list[str]:
  """The devices of the towers; skips the test if there is one GPU."""
  if "gpu" not in device:
    return [device, device]
  found = len(tf.config.experimental.list_physical_devices("GPU"))
  if found < 2:
    pytest.skip(f"needs two GPUs: this machine has {found}")
  return ["/gpu:0", "/gpu:1"]


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


def test_a_mirrored_step_looks_words_up_ahead(devices):
  done = subprocess.run(
      [sys.executable, "-s", _PROGRAM, devices[1]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
      env=os.environ | {"TF_API_VERSION": "2"}, timeout=_TIMEOUT_SECONDS, check=False)
  assert done.returncode == 0, done.stdout
