# SPDX-License-Identifier: Apache-2.0
"""The doctor says why there is no GPU."""

import ctypes.util

import pytest

from tensorflow_staging.python.build_info import build_info
from tensorflow_staging.python.doctor import devices


def test_a_wheel_without_cuda_has_none():
  found, = devices.check_gpus("cpu")
  assert not found.is_problem
  assert "this wheel has no CUDA" in found.text


def test_without_a_driver():
  found, = devices.check_gpus("cuda", driver="libnosuchdriver.so.1")
  assert found.is_problem
  assert "There is no driver: libnosuchdriver.so.1: cannot open" in found.text


@pytest.mark.skipif(build_info.build_info().base == "cuda", reason="This wheel has CUDA.")
def test_a_driver_without_a_gpu_that_tensorflow_can_use():
  # Any library does for a driver: the libraries of this wheel find no GPU.
  found, = devices.check_gpus("cuda", driver=ctypes.util.find_library("m"))
  assert found.is_problem
  assert "TensorFlow finds no GPU" in found.text or "with 2 streams fails" in found.text
