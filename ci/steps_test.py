# SPDX-License-Identifier: Apache-2.0
"""Tests of the functions in steps.sh, and of what build_wheel.sh does with them."""

import os
import pathlib
import subprocess

import pytest

_STEPS = pathlib.Path(__file__).with_name("steps.sh")
_BUILD_WHEEL = _STEPS.with_name("build_wheel.sh")

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


@pytest.fixture
def run_with_pythons(tmp_path):
  """A function that runs a command where a folder with stand-ins for Pythons comes first on the path."""

  def run(command: list[str], **pythons: str) -> subprocess.CompletedProcess:
    for version, output in pythons.items():
      stand_in = tmp_path / version.replace("_", ".")
      stand_in.write_text(f"#!/usr/bin/env bash\n{output}\n")
      stand_in.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)

  return run


def _stand_in(version: str) -> str:
  return f'[[ $2 = *executable* ]] && echo "$0" || echo {version}'


def _find_python(version: str) -> list[str]:
  return ["bash", "-c", f'source "$1"; find_python {version}', "bash", str(_STEPS)]


def test_a_python_is_found_by_its_version(run_with_pythons, tmp_path):
  found = run_with_pythons(_find_python("3.10"), python3_10="exit 127", python3=_stand_in("3.10"))
  assert (found.stdout, found.stderr) == (f"{tmp_path}/python3\n", "")


def test_a_python_that_pyenv_has_installed_is_found(run_with_pythons, tmp_path):
  python = tmp_path / "versions/3.10.13/bin/python"
  python.parent.mkdir(parents=True)
  python.write_text(f"#!/usr/bin/env bash\n{_stand_in('3.10')}\n")
  python.chmod(0o755)
  command = ["env", f"PYENV_ROOT={tmp_path}", *_find_python("3.10")]
  found = run_with_pythons(command, python3_10="exit 127", python3=_stand_in("3.12"))
  assert (found.stdout, found.stderr) == (f"{python}\n", "")


def test_where_a_python_was_sought_is_said(run_with_pythons, tmp_path):
  found = run_with_pythons(_find_python("3.10"), python3_10="exit 127", python3=_stand_in("3.12"))
  assert found.returncode == 1
  assert found.stdout == ""
  assert found.stderr == (
      f"Python 3.10 was not found (python3.10: {tmp_path}/python3.10 does not run; python3: {tmp_path}/python3 is"
      " Python 3.12). Install it with its headers, or set PYTHON_BIN_PATH to it.\n")


def test_no_wheel_is_built_without_its_python(run_with_pythons):
  built = run_with_pythons([_BUILD_WHEEL, "--python=3.9"], python3_9="exit 127", python3=_stand_in("3.11"))
  assert built.returncode == 1
  assert built.stdout == ""
  assert built.stderr.startswith("Python 3.9 was not found (")
  assert built.stderr.endswith("error: --python=3.9: nothing was built.\n")


@pytest.mark.parametrize("version", ["3.8", "3.12", "3", ""])
def test_no_wheel_is_built_for_an_unknown_python(run_with_pythons, version):
  built = run_with_pythons([_BUILD_WHEEL, f"--python={version}"])
  assert built.returncode == 1
  assert built.stderr == (
      f"error: --python={version}: TensorFlow has official wheels only for Python 3.9, 3.10, 3.11.\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config=cuda", "--chip=90"], "error: --chip=90 is no chip: write, for example, --chip=sm_90.\n"),
        (["--chip=sm_90"], "error: --chip is for wheels with CUDA: add --config=cuda.\n"),
    ],
)
def test_wrong_chips_are_refused(arguments, message):
  done = subprocess.run([_BUILD_WHEEL, *arguments], capture_output=True, text=True, timeout=30)
  assert done.returncode == 1
  assert done.stderr == message
