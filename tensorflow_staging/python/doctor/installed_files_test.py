# SPDX-License-Identifier: Apache-2.0
"""The doctor notices files, versions and distributions that are not those of the fork's wheel."""

import errno
import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from tensorflow_staging.python.doctor import installed_files
from tensorflow_staging.python.testing import test_util

_SITE_PACKAGES = pathlib.Path(importlib.metadata.distribution("tensorflow").locate_file(""))
_OVERLAY = "tensorflow/libtensorflow_cc_staging.so.2"
_FRONT = "tensorflow/libtensorflow_cc.so.2"
_BASE = "tensorflow/libtensorflow_cc_base.so.2"


def _link(source: str, target: str) -> None:
  try:
    os.link(source, target)
  except OSError as error:
    if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK):
      raise
    shutil.copy2(source, target)


@pytest.fixture
def copy(tmp_path):
  """A copy of the installation, whose files may be replaced or removed, but not written to."""
  dist_info, = _SITE_PACKAGES.glob("tensorflow-*.dist-info")
  for name in ("tensorflow", "tensorflow_staging", dist_info.name):
    shutil.copytree(
        _SITE_PACKAGES / name, tmp_path / name, copy_function=_link, ignore=shutil.ignore_patterns("__pycache__"))
  return tmp_path


def _replace(path: pathlib.Path, content: bytes) -> None:
  path.unlink()
  path.write_bytes(content)


def _write_distribution(folder: pathlib.Path, name: str, version: str, top_level: str) -> None:
  info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
  info.mkdir()
  (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
  (info / "top_level.txt").write_text(top_level)


def _problems(findings) -> list[str]:
  assert findings
  return [found.text for found in findings if found.is_problem]


def _doctor(copy: pathlib.Path, folder: pathlib.Path) -> tuple[int, str]:
  done = subprocess.run(
      [sys.executable, "-m", "tensorflow.staging", "doctor"], cwd=folder, capture_output=True, text=True,
      env={**os.environ, "PYTHONPATH": str(copy)}, timeout=test_util.PROGRAM_SECONDS, check=False)
  assert done.stderr == ""
  return done.returncode, done.stdout


def test_nothing_is_wrong_with_this_installation():
  for check in (
      installed_files.check_version, installed_files.check_other_distributions, installed_files.check_files):
    assert _problems(check(_SITE_PACKAGES)) == []


def test_an_empty_folder_has_no_installation(tmp_path):
  assert "No distribution named tensorflow" in _problems(installed_files.check_version(tmp_path))[0]
  assert "list of the installed files is not in" in _problems(installed_files.check_files(tmp_path))[0]


def test_the_stock_distribution_is_not_the_fork(tmp_path):
  _write_distribution(tmp_path, "tensorflow", "2.14.1", "tensorflow\n")
  assert _problems(installed_files.check_version(tmp_path)) == [
      "The distribution tensorflow has version 2.14.1; it is not the fork."
  ]


def test_another_distribution_of_the_same_package_is_a_problem(tmp_path):
  _write_distribution(tmp_path, "tensorflow", "2.14.1+staging.1", "tensorflow\ntensorflow_staging\n")
  _write_distribution(tmp_path, "tensorflow-estimator", "2.14.0", "tensorflow_estimator\n")
  assert _problems(installed_files.check_other_distributions(tmp_path)) == []
  _write_distribution(tmp_path, "tensorflow-cpu", "2.14.1", "tensorflow\n")
  assert _problems(installed_files.check_other_distributions(tmp_path)) == [
      "tensorflow-cpu installs into the same folder as the fork."
  ]


def test_files_that_are_missing_or_changed_are_named(copy):
  (copy / _OVERLAY).unlink()
  _replace(copy / "tensorflow_staging/python/vocabulary.py", b"#")
  session = copy / "tensorflow/python/client/session.py"
  changed = session.read_bytes()
  # As many bytes, so that only the content tells.
  _replace(session, changed[:-2] + b"#\n")
  assert _problems(installed_files.check_files(copy)) == [
      f"{_OVERLAY} is missing.",
      "tensorflow/python/client/session.py, tensorflow_staging/python/vocabulary.py are not what pip installed.",
  ]


def test_without_a_library_the_doctor_still_says_what_is_missing(copy, tmp_path_factory):
  (copy / _OVERLAY).unlink()
  status, output = _doctor(copy, tmp_path_factory.mktemp("empty"))
  assert status == 1
  assert f"PROBLEM files: {_OVERLAY} is missing." in output
  assert "PROBLEM import: import tensorflow fails: libtensorflow_cc_staging.so.2: cannot open" in output
  assert "What to do: Uninstall every distribution" in output
  assert "Traceback" not in output


def test_with_the_stock_library_in_place_of_ours_the_doctor_says_so(copy, tmp_path_factory):
  (copy / _FRONT).unlink()
  os.link(copy / _BASE, copy / _FRONT)
  status, output = _doctor(copy, tmp_path_factory.mktemp("empty"))
  assert status == 1
  assert f"PROBLEM files: {_FRONT} is not what pip installed." in output
