# SPDX-License-Identifier: Apache-2.0
"""`ahead` and `SmartStage` under TensorFlow 2's API: the cases of cases/, in processes of their own."""

import pathlib
import sys

import pytest

from tensorflow_staging.python.testing import cases
from tensorflow_staging.python.testing import forks
from tensorflow_staging.python.testing import program_environment

_CASES = pathlib.Path(__file__).parent / "cases"
_TESTING = pathlib.Path(forks.__file__).parent
# For all cases of a file: each of them trains twice, and some start programs.
_SECONDS = 500 * cases.REPEATS
# What takes long comes first.
_FILES = [f"{name}_cases.py" for name in (
    "keras", "killed_worker", "strategy", "gpu_worker", "gpu", "random", "workers", "loop", "read", "generator",
    "resource", "error", "thread", "checkpoint", "statistics", "iterator", "xla", "draw", "counter", "function",
    "callback", "python", "replicas", "optional", "service")]


@pytest.fixture(scope="module")
def interpreter():
  environment = program_environment.without_source_tree() | {"TF_API_VERSION": "2", "PYTHONPATH": str(_TESTING)}
  with forks.Server([sys.executable, str(_TESTING / "prepared_interpreter.py")], environment) as server:
    yield server


@pytest.fixture(scope="module")
def outcome(interpreter, tmp_path_factory):
  """A function that returns the error of a case of a file; each file runs once."""
  outcomes = {}

  def of(file: str, case: str) -> str:
    if file not in outcomes:
      folder = tmp_path_factory.mktemp("cases")
      stdout, stderr = folder / "stdout", folder / "stderr"
      outcomes[file] = {}
      interpreter.run(
          str(_CASES / file), folder=str(folder), stdout=str(stdout), stderr=str(stderr), seconds=_SECONDS)
      print(stderr.read_text()[-20000:], file=sys.stderr)
      outcomes[file] = cases.outcomes(stdout.read_text())
    return outcomes[file].get(case, "The process has ended before, or took too long.")

  return of


def test_each_file_of_cases_runs():
  assert sorted(path.name for path in _CASES.glob("*_cases.py")) == sorted(_FILES)


@pytest.mark.parametrize(
    "file, case", [(file, case) for file in _FILES for case in cases.names_in(_CASES / file)])
@pytest.mark.timeout(_SECONDS + 100)
def test_case(outcome, file, case):
  error = outcome(file, case)
  assert not error, error
