# SPDX-License-Identifier: Apache-2.0
"""What the wheel ships, what builds it and its tests use nothing that the oldest Python of the wheel lacks.

ruff reports newer syntax and annotations (`per-file-target-version` in pyproject.toml). This file looks for what ruff
does not: calls and names of types that fail at run time. ci/other_pythons.sh runs the code on each Python.
"""

from __future__ import annotations

import ast
import pathlib

import pytest

_ROOT = pathlib.Path(__file__).parents[1]
_FILES = sorted(path for folder in ("tensorflow_staging", "tests", "wheel") for path in (_ROOT / folder).rglob("*.py"))


def _newer_lines(text: str) -> list[int]:
  """The lines of a file that fail on Python 3.9."""
  return [node.lineno for node in ast.walk(ast.parse(text)) if _is_newer(node)]


def _is_newer(node: ast.AST) -> bool:
  if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
    return any(isinstance(part, ast.BitOr) for part in ast.walk(node.value.slice))
  return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and _is_newer_call(node, node.func.id)


def _is_newer_call(call: ast.Call, function: str) -> bool:
  if function == "zip":
    return any(keyword.arg == "strict" for keyword in call.keywords)
  return function in ("isinstance", "issubclass") and any(isinstance(each, ast.BinOp) for each in call.args[1:])


def test_no_file_uses_what_the_oldest_python_lacks():
  assert len(_FILES) > 200
  newer = {str(path.relative_to(_ROOT)): _newer_lines(path.read_text(encoding="utf-8")) for path in _FILES}
  assert {name: lines for name, lines in newer.items() if lines} == {}


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("zip(a, b)", []),
        ("zip(a, b, strict=True)", [1]),
        ("isinstance(a, (int, type(None)))", []),
        ("isinstance(a, int | None)", [1]),
        ("Pair = tuple[str, Union[int, None]]", []),
        ("Pair = tuple[str, int | None]", [1]),
    ],
)
def test_lines(code, lines):
  assert _newer_lines(code) == lines
