# SPDX-License-Identifier: Apache-2.0
"""The values of `tf.staging.build_info()` are read from the series and from Bazel's status."""

import pathlib
import subprocess

import pytest
import write_build_values

_ROOT = pathlib.Path(__file__).parents[1]


def test_patch_names_are_those_of_the_series_without_its_comments():
  assert write_build_values.patch_names("# A note.\nb.patch\n\na.patch\n") == ("b.patch", "a.patch")


@pytest.mark.parametrize("status, commit", [
    ("BUILD_HOST somewhere\nSTABLE_COMMIT 1234abcd\n", "1234abcd"),
    ("BUILD_HOST somewhere\n", None),
    ("STABLE_COMMIT \n", None),
    ("", None),
])
def test_the_commit_is_that_of_the_status(status, commit):
  assert write_build_values.commit_of(status) == commit


def test_the_module_has_the_values():
  values = {"commit": None, "patches": ("a.patch", "b.patch")}
  module = {}
  exec(write_build_values.render(values), module)
  assert module["VALUES"] == values


def _status(folder: pathlib.Path) -> str:
  return subprocess.run(
      [_ROOT / "ci/workspace_status.sh"], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_the_status_has_the_commit_of_unchanged_sources_alone(tmp_path):
  git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
  for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
    subprocess.run([*git, *command], cwd=tmp_path, check=True)
  head = subprocess.run([*git, "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
  assert _status(tmp_path) == f"STABLE_COMMIT {head}"
  (tmp_path / "new").touch()
  assert _status(tmp_path) == ""


def test_the_status_is_empty_without_a_repository(tmp_path):
  assert _status(tmp_path) == ""
