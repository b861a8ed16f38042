# SPDX-License-Identifier: Apache-2.0
"""The cases of the fork's ahead/ahead_test.py on an official TensorFlow with tf_keras: the same promises and tests."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest
import tensorflow as tf

_HERE = pathlib.Path(__file__).parent
_PYTHON = _HERE.parent.parent / "tensorflow_staging/python"
_TESTING, _CASES = _PYTHON / "testing", _PYTHON / "ahead/cases"
_FILES = sorted(path.name.removesuffix("_cases.py") for path in _CASES.glob("*_cases.py"))
_SECONDS = 600
# The cases that differ there.
_DIFFERENT = {
    # Without a stage, too: from run to run, 2.21 calls the function before the step's change or after it.
    "python": ("case_a_python_function_sees_the_variable_that_the_step_changes",),
    # 2.21 trains with ragged strings on GPUs.
    "gpu": ("case_ragged_strings_fail_on_gpus_without_a_stage_and_train_with_it",),
}


def _load_cases():
  spec = importlib.util.spec_from_file_location("cases", _TESTING / "cases.py")
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


@pytest.mark.parametrize("name", _FILES)
@pytest.mark.timeout(_SECONDS + 20)
def test_cases(name, tmp_path):
  if name.startswith("gpu") and tf.test.is_built_with_cuda():
    pytest.skip("The fake GPUs cannot run CUDA's kernels; ci/plugin_gpus.sh runs this without them.")
  cases = _load_cases()
  file = _CASES / f"{name}_cases.py"
  paths = os.pathsep.join(filter(None, (str(_HERE / "as_fork"), str(_TESTING), os.environ.get("PYTHONPATH"))))
  environment = {**os.environ, "PYTHONPATH": paths, "TF_USE_LEGACY_KERAS": "1", "TF_API_VERSION": "2"}
  done = subprocess.run(
      [sys.executable, "-B", file], cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment, timeout=_SECONDS,
      check=False)
  outcomes = cases.outcomes(done.stdout)
  failed = {case: outcomes.get(case, "The process has ended before.") for case in cases.names_in(file)}
  failed = {case: error for case, error in failed.items() if error and case not in _DIFFERENT.get(name, ())}
  assert not failed, "\n".join(f"{case}:\n{error}" for case, error in failed.items())
