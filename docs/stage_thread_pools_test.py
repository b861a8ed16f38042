# SPDX-License-Identifier: Apache-2.0
"""The tests that stage_thread_pools.md names exist."""

import pathlib
import re

_TEXT = (pathlib.Path(__file__).parent / "stage_thread_pools.md").read_text()
_STAGING = pathlib.Path(__file__).parent.parent / "tensorflow_staging"


def test_named_python_tests_exist():
  named = re.findall(r"`(\w+_test\.py)(?:::(\w+))?`", _TEXT)
  assert len(named) > 15
  missing = [
      f"{file}::{function}"
      for file, function in named
      if not re.search(rf"^def {function or 'test_'}", (_STAGING / "python" / file).read_text(), re.MULTILINE)
  ]
  assert missing == []


def test_named_cpp_tests_exist():
  named = re.findall(r"`(\w+Test)\.(\w+)`", _TEXT)
  assert named
  tests = (_STAGING / "core/common_runtime/stage_thread_pools_test.cc").read_text()
  assert [test for test in named if f"TEST({test[0]}, {test[1]})" not in tests] == []
