# SPDX-License-Identifier: Apache-2.0
"""Training under TensorFlow 2 that is killed in the middle of an epoch resumes as without a stage."""

import json
import signal
import sys

import pytest

from tensorflow_staging.python.testing import killed_fit_runs
from tensorflow_staging.python.testing import test_util

_PROGRAM = test_util.ROOT / "tensorflow_staging/python/testing/killed_fit.py"


def _run(kind, stage, folder, killed_after):
  """Runs the program until it ends, or kills itself; then returns None."""
  folder.mkdir(exist_ok=True)
  log = folder.with_suffix(".log")
  # -I keeps the program's folder off the import path, so that the process imports the installed wheel.
  with test_util.start(
      [sys.executable, "-I", _PROGRAM, kind, stage, folder, killed_after], folder.parent, log=log,
      TF_API_VERSION="2") as process:
    output, _ = process.communicate(timeout=test_util.PROGRAM_SECONDS)
  if killed_after:
    assert process.returncode == -signal.SIGKILL, log.read_text()
    return None
  assert process.returncode == 0, log.read_text()
  return json.loads(output)


@pytest.mark.timeout(4 * test_util.PROGRAM_SECONDS)
def test_a_fit_resumes_from_its_backup(tmp_path):
  outcomes = {}
  for stage in ("plain", "staged"):
    # Three epochs of 12 batches: in the middle of the second one.
    _run("fit", stage, tmp_path / stage, 18)
    outcomes[stage] = _run("fit", stage, tmp_path / stage, 0)
  assert outcomes["staged"] == outcomes["plain"]
  assert outcomes["plain"]["steps"] < 3 * 12, "It has begun anew."


@pytest.mark.parametrize("length, stage", killed_fit_runs.CASES)
@pytest.mark.timeout(6 * test_util.PROGRAM_SECONDS)
def test_a_fit_resumes_with_the_next_record(length, stage, tmp_path):
  killed_fit_runs.check(_run, length, stage, tmp_path)


@pytest.mark.timeout(4 * test_util.PROGRAM_SECONDS)
def test_a_loop_resumes_with_the_next_element(tmp_path):
  expected = _run("loop", "plain", tmp_path / "plain", 0)
  for killed_after in (13, 17):
    _run("loop", "staged", tmp_path / "staged", killed_after)
  got = _run("loop", "staged", tmp_path / "staged", 0)
  assert (expected.pop("resumed_at"), got.pop("resumed_at")) == (0, 25)
  assert got == expected
