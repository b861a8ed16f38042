# SPDX-License-Identifier: Apache-2.0
"""The tests that staged.md names exist."""

import pathlib

import named_tests

_TEXT = (pathlib.Path(__file__).parent / "staged.md").read_text()


def test_named_tests_exist():
  assert len(named_tests.python_tests(_TEXT)) > 15
  assert named_tests.missing_python_tests(_TEXT) == []
