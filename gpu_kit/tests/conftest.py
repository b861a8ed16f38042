# SPDX-License-Identifier: Apache-2.0
"""Skips the tests of this folder where TensorFlow has no GPU, and gives each a new graph."""

import os
from collections.abc import Iterator

import pytest
import tensorflow as tf
from tensorflow.python.client import device_lib

# GPU_TESTS_DEVICE=/cpu:0 tries the tests themselves on a machine without a GPU.
_DEVICE = os.environ.get("GPU_TESTS_DEVICE", "/gpu:0")


def _reason() -> str | None:
  """Returns why there is no GPU to use, or None."""
  if any(device.device_type == "GPU" for device in device_lib.list_local_devices()):
    return None
  if not tf.test.is_built_with_cuda():
    return "needs a GPU: the installed wheel is for CPUs; build it with ci/build_wheel.sh --config=cuda"
  return "needs a GPU: TensorFlow found none (docs/gpu.md, On a machine with a GPU)"


@pytest.fixture(scope="session")
def device() -> str:
  """The device of the steps; skips the test if there is no GPU."""
  if _DEVICE == "/gpu:0" and (reason := _reason()):
    pytest.skip(reason)
  return _DEVICE


@pytest.fixture
def devices(device) -> list[str]:
  """Two devices; skips the test if there is one GPU."""
  if "gpu" not in device:
    return [device, device]
  found = len(tf.config.experimental.list_physical_devices("GPU"))
  if found < 2:
    pytest.skip(f"needs two GPUs: this machine has {found}")
  return ["/gpu:0", "/gpu:1"]


@pytest.fixture(autouse=True)
def graph(device) -> Iterator[tf.Graph]:
  """Makes a new graph the default graph of the test."""
  with tf.Graph().as_default() as new_graph:
    yield new_graph
