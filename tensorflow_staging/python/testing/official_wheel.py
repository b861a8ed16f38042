# SPDX-License-Identifier: Apache-2.0
"""Runs programs with the official wheel on which this one is built."""

import pathlib
import sys

import pytest

from tensorflow_staging.python.testing import test_util

# Bazel keeps the official wheel unpacked, as one of these, beside its other repositories.
_REPOSITORIES = ("tensorflow_wheel_cpu", "tensorflow_wheel_cuda")


def run_program(program: str, folder: pathlib.Path) -> str:
  """Runs a Python program in which `import tensorflow` gives the official wheel, and other packages are as here.

  Skips the test if Bazel has not built the wheel in this source tree, and so has not unpacked the official one.

  Args:
    program: The text of the program.
    folder: The folder in which it runs.

  Returns:
    What it has printed.

  Raises:
    AssertionError: If it fails.
  """
  # The program fails itself if it gets another TensorFlow.
  check = "import tensorflow as tf; assert not hasattr(tf, 'staging') and not hasattr(tf.compat.v1, 'staging')\n"
  (folder / "program.py").write_text(check + program)
  # The compiled files lie elsewhere: Bazel would take those in its repository for a change.
  return test_util.run(
      [sys.executable, "program.py"], folder, PYTHONPATH=str(_unpacked_wheel()), TF_CPP_MIN_LOG_LEVEL="2",
      PYTHONPYCACHEPREFIX=str(pathlib.Path(sys.prefix) / "official_wheel_pycache"))


def _unpacked_wheel() -> pathlib.Path:
  # BASE/execroot/WORKSPACE/bazel-out is a link's target; the repositories are in BASE/external.
  output = (test_util.ROOT / "bazel-out").resolve()
  for repository in _REPOSITORIES if output.exists() else ():
    folder = output.parents[2] / "external" / repository
    if (folder / "tensorflow").is_dir():
      return folder
  pytest.skip("Bazel has not unpacked the official wheel: run ci/build_wheel.sh first.")
