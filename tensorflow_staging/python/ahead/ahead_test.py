# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.ahead` and `tf.staging.SmartStage` under TensorFlow 2's API, in processes that have it."""

import pathlib
import subprocess
import sys

import pytest

from tensorflow_staging.python.testing import cases
from tensorflow_staging.python.testing import program_environment

_FOLDER = pathlib.Path(cases.__file__).parent
# For all cases of a file: each of them trains twice, and some start programs.
_SECONDS = 500 * cases.REPEATS
_FILES = [
    "ahead_loop_cases.py", "ahead_iterator_cases.py", "ahead_keras_cases.py", "ahead_xla_cases.py",
    "ahead_strategy_cases.py", "ahead_random_cases.py", "ahead_draw_cases.py", "ahead_counter_cases.py",
    "ahead_function_cases.py", "ahead_callback_cases.py", "ahead_python_cases.py", "ahead_replicas_cases.py",
    "ahead_gpu_cases.py", "ahead_workers_cases.py", "ahead_killed_worker_cases.py"]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
  """A function that returns the error of a case of a file; each file runs once."""
  outcomes = {}

  def of(file: str, case: str) -> str:
    if file not in outcomes:
      environment = program_environment.without_source_tree()
      done = subprocess.run(
          [sys.executable, _FOLDER / file], cwd=tmp_path_factory.mktemp("cases"), stdout=subprocess.PIPE, text=True,
          env=environment | {"TF_API_VERSION": "2"}, timeout=_SECONDS, check=False)
      outcomes[file] = cases.outcomes(done.stdout)
    return outcomes[file].get(case, "The process has ended before.")

  return of


@pytest.mark.parametrize(
    "file, case", [(file, case) for file in _FILES for case in cases.names_in(_FOLDER / file)])
@pytest.mark.timeout(_SECONDS + 100)
def test_case(outcome, file, case):
  error = outcome(file, case)
  assert not error, error
