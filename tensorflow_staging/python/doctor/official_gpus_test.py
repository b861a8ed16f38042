# SPDX-License-Identifier: Apache-2.0
"""The plugin's doctor says why TensorFlow sees no GPU."""

import ctypes.util

import pytest
import tensorflow as tf

from tensorflow_staging.python.doctor import official_gpus

pytestmark = pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="This machine has a GPU.")

# Any library does for a driver: there is no GPU.
_DRIVER = ctypes.util.find_library("m")


def test_a_machine_without_a_driver_has_no_problem(tmp_path):
  found = official_gpus.check_gpus(tmp_path, driver="libnosuchdriver.so.1")
  assert not found.is_problem
  assert "no driver" in found.text


def test_libraries_that_are_not_installed(tmp_path):
  found = official_gpus.check_gpus(tmp_path, driver=_DRIVER)
  assert found.is_problem
  assert "tensorflow[and-cuda]" in found.advice


def test_libraries_that_the_loader_does_not_find(tmp_path, monkeypatch):
  folders = [tmp_path / "nvidia" / name / "lib" for name in ("cublas", "cusolver")]
  for folder in folders:
    folder.mkdir(parents=True)
  monkeypatch.setenv("LD_LIBRARY_PATH", str(folders[0]))
  found = official_gpus.check_gpus(tmp_path, driver=_DRIVER)
  assert found.advice.endswith(f"export LD_LIBRARY_PATH={folders[1]}:$LD_LIBRARY_PATH")
  monkeypatch.setenv("LD_LIBRARY_PATH", ":".join(map(str, folders)))
  assert "TF_CPP_MIN_LOG_LEVEL=0" in official_gpus.check_gpus(tmp_path, driver=_DRIVER).advice
