# SPDX-License-Identifier: Apache-2.0
"""The tests that staged.md names exist."""

import pathlib
import re

_DOCUMENT = pathlib.Path(__file__).parent / "staged.md"
_TESTS = pathlib.Path(__file__).parent.parent / "tensorflow_staging/python"


def test_named_tests_exist():
  named = re.findall(r"`(\w+_test\.py)(?:::(\w+))?`", _DOCUMENT.read_text())
  assert len(named) > 15
  missing = [
      f"{file}::{function}"
      for file, function in named
      if not re.search(rf"^def {function or 'test_'}", (_TESTS / file).read_text(), re.MULTILINE)
  ]
  assert missing == []
