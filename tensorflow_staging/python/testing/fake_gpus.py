# SPDX-License-Identifier: Apache-2.0
"""GPUs for Python programs on machines that have none; fake_gpus.cc says what they can do."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import tensorflow as tf
from tensorflow.python.framework import load_library

_SOURCE = pathlib.Path(__file__).with_suffix(".cc")
_COMPILERS = ("g++", "c++", "clang++")
_SECONDS = 120


def load(number: int) -> None:
  """Adds GPUs to a program that has used no device yet.

  Args:
    number: How many.

  Raises:
    RuntimeError: If there is no compiler.
  """
  compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
  if compiler is None:
    raise RuntimeError(f"The fake GPUs need a compiler: {', '.join(_COMPILERS)}.")
  os.environ["FAKE_GPUS"] = str(number)
  with tempfile.TemporaryDirectory() as folder:
    library = pathlib.Path(folder, "fake_gpus.so")
    subprocess.run(
        [compiler, "-w", "-shared", "-fPIC", f"-o{library}", _SOURCE, *tf.sysconfig.get_compile_flags(),
         *tf.sysconfig.get_link_flags()], check=True, timeout=_SECONDS)
    load_library.load_pluggable_device_library(str(library))
