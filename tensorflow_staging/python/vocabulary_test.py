# SPDX-License-Identifier: Apache-2.0
"""Tests that Python's copies of the shared names and numbers equal the C++ constants."""

import ast
import re

import pytest

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.testing import test_util

_HEADER = (test_util.ROOT / "tensorflow_staging/core/framework/vocabulary.h").read_text()

# A constant of the header: a string, a number, or a list of strings and earlier constants.
_CONSTANT = re.compile(r"inline constexpr [\w ]+?\*? ?k(\w+)(?:\[\])? =\s*([^;]+);")

_COPIES = [name for name in vars(vocabulary) if name.isupper()]


def _header_constants() -> dict[str, object]:
  """Returns the constants of the header, by Python's spelling of their names."""
  constants = {}
  for name, value in _CONSTANT.findall(_HEADER):
    literal = re.sub(r"\bk(\w+)", lambda match: repr(constants[_spelling(match[1])]), value)
    constants[_spelling(name)] = ast.literal_eval(re.sub(r"^\{(.*)\}$", r"(\1,)", literal, flags=re.DOTALL))
  return constants


def _spelling(name: str) -> str:
  """Returns Python's spelling of a constant's name: `SHARED_NAME_ATTR` for `SharedNameAttr`."""
  return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


@pytest.mark.parametrize("name", _COPIES)
def test_a_copy_equals_the_constant_of_the_header(name):
  assert getattr(vocabulary, name) == _header_constants()[name]


def test_the_header_is_read_completely():
  assert len(_header_constants()) == _HEADER.count("inline constexpr ")
