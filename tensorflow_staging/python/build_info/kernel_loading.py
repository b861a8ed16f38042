# SPDX-License-Identifier: Apache-2.0
"""Lets the driver load a GPU's kernels when they are first used, unless the program chooses otherwise.

That is the default of drivers for CUDA 12.2 and later; this wheel has older libraries. With all kernels loaded at once,
a wheel with machine code for sm_90 ended in the driver on an H100 (docs/gpu.md).
"""

import os
from collections.abc import MutableMapping

from tensorflow_staging.python.build_info import build_values

_VARIABLE = "CUDA_MODULE_LOADING"


def choose(base: str, environment: MutableMapping[str, str]) -> None:
  """Sets the driver's variable for a wheel with CUDA, unless it is set.

  Args:
    base: The `base` of `tf.staging.build_info()`.
    environment: The environment to change. The driver reads it when the process first uses a GPU.
  """
  if base == "cuda":
    environment.setdefault(_VARIABLE, "LAZY")


choose(build_values.VALUES["base"], os.environ)
