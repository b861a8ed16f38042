# SPDX-License-Identifier: Apache-2.0
"""The tests that a document names, and whether they exist."""

import pathlib
import re

_ROOT = pathlib.Path(__file__).parent.parent
_STAGING = _ROOT / "tensorflow_staging"
_PYTHON = (_STAGING, _ROOT / "tests", _ROOT / "docs", _ROOT / "modelzoo", _ROOT / "wheel")


def python_tests(text: str) -> list[tuple[str, str]]:
  """The Python tests that a document names.

  Args:
    text: The document.

  Returns:
    Of each test its file's name and its function; the function is empty where only the file is named.
  """
  return re.findall(r"`(\w+_(?:test|cases)\.py)(?:::(\w+))?`", text)


def missing_python_tests(text: str) -> list[str]:
  """The Python tests that a document names and that do not exist.

  Args:
    text: The document.

  Returns:
    "file::function" of each.
  """
  return [
      f"{file}::{function}"
      for file, function in python_tests(text)
      if not re.search(rf"^def {function or 'test_'}", _source(file), re.MULTILINE)
  ]


def missing_cpp_tests(text: str) -> list[str]:
  """The C++ tests, written `SuiteTest.Case`, that a document names and that do not exist.

  Args:
    text: The document.

  Returns:
    "SuiteTest.Case" of each.
  """
  sources = "".join(path.read_text() for path in (_STAGING / "core").rglob("*_test.cc"))
  return [
      f"{suite}.{case}"
      for suite, case in re.findall(r"`(\w+Test)\.(\w+)`", text)
      if not re.search(rf"TEST(_[FP])?\({suite},\s+{case}\)", sources)
  ]


def _source(file: str) -> str:
  """The text of a Python test; empty if there is none."""
  return "".join(path.read_text() for folder in _PYTHON for path in folder.rglob(file))
