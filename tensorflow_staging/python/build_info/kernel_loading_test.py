# SPDX-License-Identifier: Apache-2.0
"""The driver loads kernels when they are first used."""

import os

import pytest
import tensorflow as tf

from tensorflow_staging.python.build_info import kernel_loading


@pytest.mark.parametrize("base, before, after", [
    ("cuda", {}, {"CUDA_MODULE_LOADING": "LAZY"}),
    ("cuda", {"CUDA_MODULE_LOADING": "EAGER"}, {"CUDA_MODULE_LOADING": "EAGER"}),
    ("cpu", {}, {}),
])
def test_only_a_wheel_with_cuda_chooses_and_only_where_the_program_does_not(base, before, after):
  environment = dict(before)
  kernel_loading.choose(base, environment)
  assert environment == after


def test_importing_tensorflow_chooses():
  # In this process, or in one that has started it.
  assert ("CUDA_MODULE_LOADING" in os.environ) >= (tf.staging.build_info().base == "cuda")
