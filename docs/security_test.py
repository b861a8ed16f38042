# SPDX-License-Identifier: Apache-2.0
"""The tests that security.md names exist."""

import pathlib

import named_tests

_TEXT = (pathlib.Path(__file__).parent / "security.md").read_text()


def test_named_tests_exist():
  assert len(named_tests.python_tests(_TEXT)) == 3
  assert named_tests.missing_python_tests(_TEXT) == []
  assert named_tests.missing_cpp_tests(_TEXT) == []
