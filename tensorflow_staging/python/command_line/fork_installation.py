# SPDX-License-Identifier: Apache-2.0
"""The version of the fork, and what the doctor checks of it."""

import pathlib
from collections.abc import Iterator

import tensorflow

from tensorflow_staging.python.build_info import build_info
from tensorflow_staging.python.doctor import api_root
from tensorflow_staging.python.doctor import devices
from tensorflow_staging.python.doctor import finding
from tensorflow_staging.python.doctor import gpu_code
from tensorflow_staging.python.doctor import installed_files
from tensorflow_staging.python.doctor import loaded_libraries
from tensorflow_staging.python.doctor import trial_runs

# The three trials together train for a second.
_SECONDS = 1 / 3


def version() -> str:
  """Returns the version in words."""
  info = build_info.build_info()
  commit = f", commit {info.commit}" if info.commit else ""
  return f"tensorflow {info.version} ({info.base}){commit}"


def findings() -> Iterator[finding.Finding]:
  """Checks the installation, one thing after the other."""
  package = pathlib.Path(tensorflow.__file__).parent
  site_packages = package.parent
  info = build_info.build_info()
  code = f"machine code for {', '.join(info.chips)}, " if info.chips else ""
  yield from installed_files.check_version(site_packages)
  yield finding.Finding(
      "build",
      f"{len(info.patches)} patches over TensorFlow {info.tensorflow_version}, {info.base} libraries,"
      f" {code}{f'commit {info.commit}' if info.commit else 'built from sources that are no commit'}.")
  yield from api_root.check_root(info.default_api_version)
  yield from installed_files.check_other_distributions(site_packages)
  yield from installed_files.check_files(site_packages)
  yield from loaded_libraries.check_loaded(pathlib.Path("/proc/self/maps").read_text(), package)
  yield from loaded_libraries.check_order(package / "libtensorflow_cc.so.2")
  yield from loaded_libraries.check_session()
  yield from devices.check_gpus(info.base)
  if info.chips:
    yield from gpu_code.check_gpu_code(info.chips, gpu_code.find(devices.DRIVER))
  yield from trial_runs.check_stage(_SECONDS)
  yield from trial_runs.check_smart_stage(_SECONDS)
  yield from trial_runs.check_pool(_SECONDS)
