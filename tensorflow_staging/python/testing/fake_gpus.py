# SPDX-License-Identifier: Apache-2.0
"""GPUs for Python programs on machines that have none; fake_gpus.cc says what they can do."""

import os
import pathlib

import compiled_library
from tensorflow.python.framework import load_library


def load(number: int) -> None:
  """Adds GPUs to a program that has used no device yet.

  Args:
    number: How many.

  Raises:
    RuntimeError: If there is no compiler.
  """
  os.environ["FAKE_GPUS"] = str(number)
  compiled_library.load(pathlib.Path(__file__).with_suffix(".cc"), load_library.load_pluggable_device_library)
