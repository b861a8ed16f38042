# SPDX-License-Identifier: Apache-2.0
"""Checks that no repository rule ignores the result of a command.

rctx.execute() does not fail when its command fails. So each call must assign its result to a variable, and a condition
must look at that variable's return_code before the variable gets another value; execute_or_fail() does both. The test
parses the .bzl files as Python: the repository rules use only syntax that the two languages share.
"""

import ast
import pathlib

import pytest

_FOLDER = pathlib.Path(__file__).parent
_FILES = sorted(_FOLDER.rglob("*.bzl"))


def _unchecked_lines(text: str) -> list[int]:
  """The lines of a .bzl file that use rctx.execute() without a look at the return code."""
  tree = ast.parse(text)
  parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
  return [
      node.lineno
      for node in ast.walk(tree)
      if isinstance(node, ast.Attribute) and node.attr == "execute" and not _is_checked(node, parents)
  ]


def _is_checked(execute: ast.Attribute, parents: dict[ast.AST, ast.AST]) -> bool:
  call = parents[execute]
  assignment = parents[call]
  match assignment:
    case ast.Assign(targets=[ast.Name(id=variable)], value=value) if value is call and call.func is execute:
      pass
    case _:
      return False

  scope = parents[assignment]
  while not isinstance(scope, (ast.FunctionDef, ast.Module)):
    scope = parents[scope]
  names = [node for node in ast.walk(scope) if isinstance(node, ast.Name) and node.id == variable]
  next_assignment = min(
      (name.lineno for name in names if isinstance(name.ctx, ast.Store) and name.lineno > assignment.lineno),
      default=float("inf"),
  )
  return any(
      assignment.lineno < name.lineno < next_assignment
      for name in names
      if _is_return_code_in_condition(name, parents)
  )


def _is_return_code_in_condition(name: ast.Name, parents: dict[ast.AST, ast.AST]) -> bool:
  node = parents[name]
  if not (isinstance(node, ast.Attribute) and node.attr == "return_code"):
    return False
  while node in parents:
    parent = parents[node]
    if isinstance(parent, (ast.If, ast.IfExp)) and parent.test is node:
      return True
    node = parent
  return False


@pytest.mark.parametrize("path", _FILES, ids=lambda path: str(path.relative_to(_FOLDER)))
def test_every_return_code_is_checked(path):
  assert _unchecked_lines(path.read_text()) == []


def test_the_files_execute_commands():
  assert any("rctx.execute(" in path.read_text() for path in _FILES)


@pytest.mark.parametrize(
    "body",
    [
        "result = rctx.execute(['a'])\n  if result.return_code != 0:\n    fail(result.stderr)",
        "result = rctx.execute(['a'])\n  if result.return_code != 0 or 'b' in result.stdout:\n    fail(result.stderr)",
        "result = rctx.execute(['a'])\n  return None if result.return_code else result.stdout",
        "for a in ['a', 'b']:\n    result = rctx.execute([a])\n    if result.return_code != 0:\n      return None",
        "execute_or_fail(rctx, ['a'], 'do it')",
    ],
)
def test_checked_results(body):
  assert _unchecked_lines(f"def _impl(rctx):\n  {body}\n") == []


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("rctx.execute(['a'])", 2),
        ("repository_ctx.execute(['a'])", 2),
        ("lines = rctx.execute(['a']).stdout.split('|')", 2),
        ("result = rctx.execute(['a'])\n  rctx.file('b', result.stdout)", 2),
        ("result = rctx.execute(['a'])\n  if result.stdout:\n    print(result.return_code)", 2),
        ("return rctx.execute(['a'])", 2),
        ("execute = rctx.execute\n  execute(['a'])", 2),
        ("first = rctx.execute(['a'])\n  second = rctx.execute(['b'])\n  if first.return_code:\n    fail()", 3),
        ("r = rctx.execute(['a'])\n  if r.return_code:\n    fail()\n  r = rctx.execute(['b'])", 5),
        ("r = rctx.execute(['a'])\n  r = rctx.execute(['b'])\n  if r.return_code:\n    fail()", 2),
    ],
)
def test_ignored_results(body, line):
  assert _unchecked_lines(f"def _impl(rctx):\n  {body}\n") == [line]
