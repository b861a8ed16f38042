# SPDX-License-Identifier: Apache-2.0
"""The tests that gpu.md names exist."""

import pathlib

import named_tests

_TEXT = (pathlib.Path(__file__).parent / "gpu.md").read_text()


def test_named_cpp_tests_exist():
  assert named_tests.missing_cpp_tests("`PackedCopyTest.IsNotThere`") != []
  assert named_tests.missing_cpp_tests(_TEXT) == []
