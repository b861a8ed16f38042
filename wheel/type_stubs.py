# SPDX-License-Identifier: Apache-2.0
"""Writes type stubs of the fork's public functions, so that type checkers find wrong arguments of `tf.staged`.

TensorFlow has no types: its decorators and its root hide those of our functions. The stub of the root has our
signatures, and Any for all other names. mypy reads nothing else; other checkers and editors also see
TensorFlow's names.
"""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterable

# What an annotation in a stub may consist of. Any other name stands for a type of TensorFlow, which has no stub.
_KNOWN = frozenset({
    "Any", "Callable", "Iterable", "Mapping", "None", "Optional", "Sequence", "Union", "bytes", "dict", "float",
    "frozenset", "int", "list", "object", "set", "str", "tuple",
})
# The root also has tf.bool.
_HIDDEN = {"bool": "builtins.bool"}

_HEAD = '''\
# Written by wheel/type_stubs.py from the public functions of tensorflow_staging. For type checkers and editors only.
import builtins
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Optional
from typing import Union

'''

# mypy takes a variable of this name for true. It would read all of TensorFlow's root, in minutes, and learn no type.
_ROOT = '''\
from . import staging as staging

MYPY = False
if not MYPY:
  from tensorflow._root_v{version} import *

'''

_PUBLIC_NAMES = '''
import typing as _typing

if _typing.TYPE_CHECKING:
  __all__ = [
{}  ]
'''

_REST = '''
def __getattr__(name: str) -> Any: ...
'''


def stubs(sources: Iterable[pathlib.Path], version: str) -> dict[str, str]:
  """Returns the text of the stubs, by their paths in the wheel.

  Args:
    sources: The Python files of tensorflow_staging.
    version: The API of the root that a checker sees: "1" or "2".

  Raises:
    ValueError: If no file exports a name.
  """
  root: dict[str, str] = {}
  staging: dict[str, str] = {}
  for path in sources:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
      for name in _exported_names(node):
        package, _, last = name.rpartition(".")
        # Names of TensorFlow's own packages are Any, as these packages are.
        if package in ("", "staging"):
          (staging if package else root)[last] = _declaration(node)
  if not root or not staging:
    raise ValueError("No file exports a name by @tf_export.")
  return {
      "tensorflow/py.typed": "",
      "tensorflow/__init__.pyi": _HEAD + _ROOT.format(version=version) + _joined(root) + _REST,
      "tensorflow/staging.pyi": _HEAD + _joined(staging),
  }


def public_names(module: str) -> str:
  """Returns what to append to a module of the API, so that a checker does not take its names for private ones.

  In a package with types, what a module imports is its own, unless it says otherwise. When Python runs the module,
  nothing changes.

  Args:
    module: The text of the module, as TensorFlow's generator has written it.
  """
  names = sorted({
      alias.asname or alias.name
      for node in ast.parse(module).body if isinstance(node, ast.ImportFrom)
      for alias in node.names
  })
  public = [name for name in names if not name.startswith("_") and name != "*"]
  return _PUBLIC_NAMES.format("".join(f"      {name!r},\n" for name in public)) if public else ""


def _joined(declarations: dict[str, str]) -> str:
  return "\n".join(declarations[name] for name in sorted(declarations))


def _exported_names(node: ast.stmt) -> list[str]:
  """Returns the names by which @tf_export exports a function or class."""
  return [
      argument.value
      for decorator in getattr(node, "decorator_list", [])
      if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "tf_export"
      for argument in decorator.args
  ]


def _declaration(node: ast.stmt) -> str:
  if isinstance(node, ast.ClassDef):
    methods = [
        each for each in node.body
        if isinstance(each, ast.FunctionDef) and (each.name == "__init__" or not each.name.startswith("_"))
    ]
    body = "".join(f"  {line}\n" for each in methods for line in _function(each).splitlines())
    # Its base is a class of TensorFlow.
    return f"class {node.name}:\n{body}  def __getattr__(self, name: str) -> Any: ...\n"
  return _function(node)


def _function(node: ast.FunctionDef) -> str:
  """Returns a function without its body, with types that a checker can resolve, and `...` for defaults."""
  arguments = node.args
  for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
    if argument is not None and argument.annotation is not None:
      argument.annotation = _type(argument.annotation)
  arguments.defaults = [ast.Constant(...) for _ in arguments.defaults]
  arguments.kw_defaults = [default and ast.Constant(...) for default in arguments.kw_defaults]
  returned = ast.unparse(_type(node.returns)) if node.returns else "None" if node.name == "__init__" else "Any"
  # A context manager returns an object of the standard library, whose decorator the stub does not have.
  if any(ast.unparse(each).endswith("contextmanager") for each in node.decorator_list):
    returned = "Any"
  return f"def {node.name}({ast.unparse(arguments)}) -> {returned}: ...\n"


def _type(annotation: ast.expr) -> ast.expr:
  """Returns an annotation in which Any stands for each type that is not known."""
  if isinstance(annotation, ast.Subscript):
    if isinstance(annotation.value, ast.Name) and annotation.value.id in _KNOWN:
      return ast.Subscript(annotation.value, _type(annotation.slice), ast.Load())
    return ast.Name("Any")
  if isinstance(annotation, (ast.Tuple, ast.List)):
    return type(annotation)([_type(each) for each in annotation.elts], ast.Load())
  if isinstance(annotation, ast.Constant) and (annotation.value is None or annotation.value is ...):
    return annotation
  if isinstance(annotation, ast.Name) and annotation.id in _HIDDEN:
    return ast.parse(_HIDDEN[annotation.id], mode="eval").body
  if isinstance(annotation, ast.Name) and annotation.id in _KNOWN:
    return annotation
  return ast.Name("Any")
