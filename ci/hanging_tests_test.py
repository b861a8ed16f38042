# SPDX-License-Identifier: Apache-2.0
"""A test that hangs fails with what it does, and the other tests run all the same."""

import os
import pathlib
import subprocess
import sys

import pytest

_CONFTEST = f"""
import sys
sys.path.append({str(pathlib.Path(__file__).parent)!r})
import hanging_tests
hanging_tests._MORE_SECONDS = 2
pytest_plugins = ["hanging_tests"]
"""
_TESTS = """
import ctypes
import time

import pytest


@pytest.mark.timeout(1)
def test_waits_in_python():
  while True:
    time.sleep(0.01)


@pytest.mark.timeout(1)
def test_waits_in_c():
  # Python's handlers of signals run when the function has returned.
  wait_for_ever()


def wait_for_ever():
  pthread_mutex = ctypes.create_string_buffer(256)
  ctypes.CDLL(None).pthread_mutex_lock(pthread_mutex)
  ctypes.CDLL(None).pthread_mutex_lock(pthread_mutex)


@pytest.fixture
def no_end():
  yield
  wait_for_ever()


@pytest.mark.timeout(1)
def test_fails_and_does_not_end(no_end):
  raise AssertionError


def test_passes():
  pass
"""


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_hanging_test(tmp_path, workers):
  (tmp_path / "conftest.py").write_text(_CONFTEST)
  (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 60\n")
  (tmp_path / "some_test.py").write_text(_TESTS)
  environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
  done = subprocess.run(
      [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *workers, "some_test.py"], cwd=tmp_path,
      env=environment, capture_output=True, text=True, timeout=100, check=False)
  printed = done.stdout + done.stderr
  assert done.returncode != 0
  assert "in test_waits_in_c" in printed
  if workers:
    assert "in no_end" in printed
    assert "Timeout (>1.0s) from pytest-timeout" in printed
    assert "1 passed" in done.stdout.splitlines()[-1], printed


def test_the_command_line_can_give_tests_more_time(tmp_path):
  (tmp_path / "conftest.py").write_text(_CONFTEST)
  (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 0.2\n")
  (tmp_path / "slow_test.py").write_text("import time\n\n\ndef test_takes_long():\n  time.sleep(3)\n")
  subprocess.run(
      [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout=60", "slow_test.py"], cwd=tmp_path,
      check=True, timeout=100)
