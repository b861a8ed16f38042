# SPDX-License-Identifier: Apache-2.0
"""A program of TensorFlow 2 in TensorFlow 1's root learns which variable to set, whatever it meets first."""

import ast

import pytest

from tensorflow_staging.python.testing import test_util

_REMEDY = (
    " This program runs with TensorFlow 1's API. If it is written for TensorFlow 2, set the environment variable"
    " TF_API_VERSION=2 before it imports TensorFlow.")

# What a program says, and the beginning of its error.
_CASES = {
    "tf.keras.layers.StringLookup": "AttributeError: tf.keras.layers.StringLookup is of TensorFlow 2.",
    "tf.keras.utils.set_random_seed(1)": "AttributeError: tf.keras.utils.set_random_seed is of TensorFlow 2.",
    "tf.random.set_seed(1)": "AttributeError: tf.random.set_seed is of TensorFlow 2.",
    "tf.summary.create_file_writer": "AttributeError: tf.summary.create_file_writer is of TensorFlow 2.",
    "tf.optimizers": "AttributeError: tf.optimizers is of TensorFlow 2.",
    "tf.constant(1).numpy()": "AttributeError: 'SymbolicTensor' object has no attribute 'numpy'",
    "tf.Variable(1).numpy()": "AttributeError: 'RefVariable' object has no attribute 'numpy'",
    "iter(tf.data.Dataset.range(3))": "RuntimeError: `tf.data.Dataset` only supports Python-style iteration in eager",
    "list(tf.data.Dataset.range(3))": "RuntimeError: `tf.data.Dataset` only supports Python-style iteration in eager",
    "tf.data.Dataset.range(3).as_numpy_iterator()": "RuntimeError: `tf.data.Dataset.as_numpy_iterator()` is only",
    "tf.staging.SmartStage()": "RuntimeError: tf.staging.SmartStage() is for TensorFlow 2, and eager execution is off.",
    "tf.staging.ahead(tf.function(lambda i: i))(1)":
        "RuntimeError: A step of tf.staging.ahead is for TensorFlow 2, and eager execution is off.",
}

_PROGRAM = """
import tensorflow as tf
{begin}
errors = []
for case in {cases}:
  try:
    eval(case)
    errors.append("")
  except Exception as error:
    errors.append(f"{{type(error).__name__}}: {{error}}")
print(errors)
"""


def _errors(folder, cases, begin="", **options):
  return ast.literal_eval(test_util.run_program(_PROGRAM.format(cases=cases, begin=begin), folder, **options))


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
  return dict(zip(_CASES, _errors(tmp_path_factory.mktemp("program"), list(_CASES))))


@pytest.mark.parametrize("case", _CASES)
def test_an_error_names_the_variable(errors, case):
  assert errors[case].startswith(_CASES[case])
  assert _REMEDY in errors[case]


def test_what_no_version_has_does_not(tmp_path):
  cases = ["tf.nothing", "tf.math.nothing", "tf.keras.layers.Nothing", "tf.constant(1).nothing"]
  found = _errors(tmp_path, cases)
  assert all(error.startswith("AttributeError: ") and error.endswith("'") for error in found), found


def test_nothing_changes_in_a_program_with_eager_execution(tmp_path):
  cases = ["tf.constant(1).numpy()", "list(tf.data.Dataset.range(3))", "tf.function(lambda: tf.constant(1).numpy())()"]
  found = _errors(tmp_path, cases, begin="tf.enable_eager_execution()")
  assert found[:2] == ["", ""]
  assert "has no attribute 'numpy'" in found[2] and _REMEDY not in found[2]


def test_version_2_without_eager_execution(tmp_path):
  cases = ["tf.staging.SmartStage()", "tf.staging.ahead(tf.function(lambda i: i))(1)"]
  for error in _errors(tmp_path, cases, begin="tf.compat.v1.disable_eager_execution()", api_version="2"):
    assert "eager execution is off. Do not call tf.compat.v1.disable_eager_execution()." in error
    assert "TF_API_VERSION" not in error
