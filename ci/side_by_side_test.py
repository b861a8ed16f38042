# SPDX-License-Identifier: Apache-2.0
"""Tests marked `alone` run when no other worker runs a test; all others run side by side."""

import json
import pathlib
import subprocess
import sys

_CONFTEST = f"""
import sys
sys.path.append({str(pathlib.Path(__file__).parent)!r})
pytest_plugins = ["side_by_side"]
"""
# Each test appends when it began and ended. `meet` waits for the other file's test, which therefore runs beside it.
_TESTS = """
import json
import pathlib
import time

import pytest

FOLDER = pathlib.Path(__file__).parent


@pytest.fixture(autouse=True)
def times(request):
  began = time.monotonic()
  yield
  name = f"{FILE}-{request.node.name}"
  (FOLDER / f"{name}.json").write_text(json.dumps([began, time.monotonic()]))


def test_meet():
  (FOLDER / f"{FILE}.here").touch()
  ends = time.monotonic() + 60
  while not (FOLDER / f"{1 - FILE}.here").exists():
    assert time.monotonic() < ends
    time.sleep(0.001)


@pytest.mark.parametrize("number", range(20))
def test_beside(number):
  time.sleep(0.01)


@pytest.mark.alone
@pytest.mark.parametrize("number", range(3))
def test_alone(number):
  time.sleep(0.01)


@pytest.mark.parametrize("number", range(20, 30))
def test_afterwards(number):
  time.sleep(0.01)
"""


def _run(folder: pathlib.Path, *options: str) -> dict[str, list[float]]:
  """Runs both files, and returns when each of their tests began and ended."""
  (folder / "conftest.py").write_text(_CONFTEST)
  for number in range(2):
    (folder / f"test_{number}.py").write_text(_TESTS.replace("import json\n", f"import json\n\nFILE = {number}\n", 1))
  subprocess.run(
      [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options], cwd=folder, check=True, timeout=60)
  return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}


def test_nothing_runs_beside_a_test_that_is_alone(tmp_path):
  times = _run(tmp_path, "-n", "2", "--dist", "loadfile")
  assert len(times) == 68
  for name, (began, ended) in times.items():
    if "alone" in name:
      others = [other for other, (start, end) in times.items() if other != name and start < ended and end > began]
      assert others == [], name


def test_without_workers_there_is_nothing_to_wait_for(tmp_path):
  assert len(_run(tmp_path, "-k", "not meet")) == 66
