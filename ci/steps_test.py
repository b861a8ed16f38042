# SPDX-License-Identifier: Apache-2.0
"""Tests of the functions in steps.sh."""

import os
import pathlib
import subprocess

import pytest

_STEPS = pathlib.Path(__file__).with_name("steps.sh")

# Stands for Python: it logs its arguments, and fails if FAILING names one of them.
_FAKE_PYTHON = """#!/usr/bin/env bash
echo "$* config=${PIP_CONFIG_FILE:-}" >>"$CALLS"
for argument; do
  [ "$argument" != "$FAILING" ] || exit 1
done
"""


@pytest.fixture
def install_pinned(tmp_path):
  """A function that runs install_pinned in a script, and returns the finished process and pip's calls, a line each."""
  python = tmp_path / "python"
  python.write_text(_FAKE_PYTHON)
  python.chmod(0o755)

  def run(folder: str | None, failing: str = "") -> tuple[subprocess.CompletedProcess, list[str]]:
    calls = tmp_path / "calls"
    environment = os.environ | {"CALLS": str(calls), "FAILING": failing}
    for variable in ("TF_STAGING_DISTDIR", "PIP_CONFIG_FILE"):
      environment.pop(variable, None)
    if folder is not None:
      environment["TF_STAGING_DISTDIR"] = folder
    process = subprocess.run(
        ["bash", "-c", 'source "$1"; install_pinned "$2" a.txt b.txt; echo "Installed."', "bash", _STEPS, python],
        env=environment,
        capture_output=True,
        text=True,
    )
    lines = calls.read_text().splitlines()
    for line in lines:
      assert "--require-hashes" in line
      assert "--requirement=a.txt --requirement=b.txt" in line
    return process, lines

  return run


@pytest.mark.parametrize("folder", [None, ""])
def test_without_a_local_folder_pip_uses_its_index(install_pinned, folder):
  process, calls = install_pinned(folder)
  assert process.returncode == 0
  assert len(calls) == 1
  assert "--no-index" not in calls[0]
  assert "--find-links" not in calls[0]
  assert calls[0].endswith("config=")


def test_a_complete_local_folder_is_all_that_pip_uses(install_pinned):
  process, calls = install_pinned("/local archives")
  assert process.returncode == 0
  assert process.stdout == "Installed.\n"
  assert len(calls) == 1
  assert calls[0].endswith("--find-links=/local archives --no-index --isolated config=/dev/null")


def test_an_incomplete_local_folder_is_reported_before_pip_uses_its_index(install_pinned):
  process, calls = install_pinned("/archives", failing="--no-index")
  assert process.returncode == 0
  assert process.stdout.splitlines() == [
      "pip could not install all packages from /archives alone; it now tries with its index.",
      "Installed.",
  ]
  assert len(calls) == 2
  assert "--no-index" in calls[0]
  assert "--no-index" not in calls[1]
  assert "--isolated" not in calls[1]
  assert calls[1].endswith("--find-links=/archives config=")


@pytest.mark.parametrize("folder", [None, "/archives"])
def test_the_script_stops_where_pip_fails(install_pinned, folder):
  process, _ = install_pinned(folder, failing="--quiet")
  assert process.returncode != 0
  assert "Installed." not in process.stdout
