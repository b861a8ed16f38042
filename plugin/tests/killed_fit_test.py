# SPDX-License-Identifier: Apache-2.0
"""A `fit` that was killed, with Keras 3 and with tf_keras, goes on with exactly the next record."""

import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

_HERE = pathlib.Path(__file__).parent
_TESTING = _HERE.parent.parent / "tensorflow_staging/python/testing"


def _load_runs():
  spec = importlib.util.spec_from_file_location("killed_fit_runs", _TESTING / "killed_fit_runs.py")
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


_RUNS = _load_runs()


# Under a strategy, Keras 3 trains with numbers only: strategy_backup_test.py.
@pytest.mark.parametrize("keras, length, stage", [
    (keras, *case) for keras in ("keras", "tf_keras") for case in _RUNS.CASES
    if keras == "tf_keras" or case[0] not in _RUNS.STRATEGIES])
@pytest.mark.timeout(400)
def test_a_killed_fit_goes_on_with_the_next_record(keras, length, stage, tmp_path):
  environment = {
      **os.environ, "PYTHONPATH": str(_HERE / "as_fork"), "TF_USE_LEGACY_KERAS": str(int(keras == "tf_keras"))}

  def run(*arguments):
    done = subprocess.run(
        [sys.executable, "-B", _TESTING / "killed_fit.py", *map(str, arguments)], capture_output=True, text=True,
        env=environment, timeout=100, check=False)
    assert done.returncode == (-signal.SIGKILL if arguments[-1] else 0), done.stderr
    return None if arguments[-1] else json.loads(done.stdout.splitlines()[-1])

  _RUNS.check(run, length, stage, tmp_path)
