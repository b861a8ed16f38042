# SPDX-License-Identifier: Apache-2.0
"""The tests that stage_thread_pools.md names exist."""

import pathlib

import named_tests

_TEXT = (pathlib.Path(__file__).parent / "stage_thread_pools.md").read_text()


def test_named_python_tests_exist():
  assert len(named_tests.python_tests(_TEXT)) > 15
  assert named_tests.missing_python_tests(_TEXT) == []


def test_named_cpp_tests_exist():
  assert named_tests.missing_cpp_tests("`StageThreadPoolsTest.IsNotThere`") != []
  assert named_tests.missing_cpp_tests(_TEXT) == []
