# SPDX-License-Identifier: Apache-2.0
"""Checks that an official TensorFlow uses the machine's GPUs."""

import ctypes
import os
import pathlib

from tensorflow.python.framework import config

from tensorflow_staging.python.doctor import finding

_CHECK = "GPUs"
_DRIVER = "libcuda.so.1"
_VARIABLE = "LD_LIBRARY_PATH"


def check_gpus(site_packages: pathlib.Path, driver: str = _DRIVER) -> finding.Finding:
  """Checks that TensorFlow sees a GPU where there is a driver for one.

  Args:
    site_packages: The folder in which pip installs packages, CUDA's libraries among them.
    driver: The driver's library, which the loader looks for.
  """
  if gpus := len(config.list_physical_devices("GPU")):
    return finding.Finding(_CHECK, f"TensorFlow sees {gpus}. Stages run on the CPU, and copy their records there.")
  try:
    ctypes.CDLL(driver)
  except OSError:
    return finding.Finding(_CHECK, "TensorFlow sees none, and there is no driver for one.")
  return finding.Finding(_CHECK, "There is a driver, but TensorFlow sees no GPU.", _advice(site_packages))


def _advice(site_packages: pathlib.Path) -> str:
  libraries = sorted(site_packages.glob("nvidia/*/lib"))
  if not libraries:
    return "Install CUDA's libraries: pip install 'tensorflow[and-cuda]'"
  # TensorFlow 2.21 does not find cuSOLVER beside itself, and then uses no GPU.
  named = {pathlib.Path(folder).resolve() for folder in os.environ.get(_VARIABLE, "").split(os.pathsep) if folder}
  missing = [str(folder) for folder in libraries if folder.resolve() not in named]
  if not missing:
    return "Run a program with TF_CPP_MIN_LOG_LEVEL=0: TensorFlow logs what it lacks."
  return f"Let the loader find CUDA's libraries: export {_VARIABLE}={os.pathsep.join(missing)}:${_VARIABLE}"
