# SPDX-License-Identifier: Apache-2.0
"""No modules of `tensorflow_staging/python` import each other in a circle."""

import ast
import graphlib
import pathlib

_PACKAGE = "tensorflow_staging.python"
_FOLDER = pathlib.Path(__file__).parents[1]


def _modules(folder: pathlib.Path, package: str) -> dict[str, pathlib.Path]:
  """Returns the source file of each module below `folder`, by the full name of the module."""
  modules = {}
  for path in folder.rglob("*.py"):
    names = path.relative_to(folder).with_suffix("").parts
    if names[-1] == "__init__":
      names = names[:-1]
    modules[".".join((package, *names))] = path
  return modules


def _imported_names(module: str, path: pathlib.Path) -> set[str]:
  """Returns the full names that a module imports anywhere, including in functions and under TYPE_CHECKING."""
  names = set()
  package = module if path.name == "__init__.py" else module.rpartition(".")[0]
  for node in ast.walk(ast.parse(path.read_text(), str(path))):
    if isinstance(node, ast.Import):
      names.update(alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      origin = node.module or ""
      if node.level:
        parents = package.split(".")
        parents = parents[:len(parents) + 1 - node.level]
        origin = ".".join([*parents, origin] if origin else parents)
      names.update(f"{origin}.{alias.name}" for alias in node.names)
  return names


def _import_graph(folder: pathlib.Path, package: str) -> dict[str, set[str]]:
  """Returns the modules of the same folder that each module imports."""
  modules = _modules(folder, package)
  graph = {}
  for module, path in modules.items():
    graph[module] = set()
    for name in _imported_names(module, path):
      # In "from module import name", the name may be an attribute of the module.
      while name and name not in modules:
        name = name.rpartition(".")[0]
      if name:
        graph[module].add(name)
  return graph


def _circle(graph: dict[str, set[str]]) -> list[str]:
  """Returns a list of modules, each importing the next, that ends with its first one; empty if there is no circle."""
  try:
    graphlib.TopologicalSorter(graph).prepare()
  except graphlib.CycleError as error:
    return error.args[1][::-1]
  return []


def _write(folder: pathlib.Path, **sources: str) -> None:
  for name, source in sources.items():
    (folder / f"{name}.py").write_text(source)


def test_no_modules_import_each_other_in_a_circle():
  graph = _import_graph(_FOLDER, _PACKAGE)
  # An empty graph would have no circle either, so check that the graph has a known import.
  assert f"{_PACKAGE}.session.all_sessions" in graph[f"{_PACKAGE}.session.prefetch_hook"]
  circle = _circle(graph)
  assert not circle, " imports ".join(circle)


def test_a_circle_is_found_and_named(tmp_path):
  _write(
      tmp_path,
      top="from package import first",
      first="import package.second as renamed",
      second="import typing\nif typing.TYPE_CHECKING:\n  from package.third import Name",
      third="def function():\n  from . import first")
  circle = _circle(_import_graph(tmp_path, "package"))
  assert circle[0] == circle[-1]
  assert set(zip(circle, circle[1:])) == {
      ("package.first", "package.second"),
      ("package.second", "package.third"),
      ("package.third", "package.first"),
  }


def test_imports_without_a_circle_are_accepted(tmp_path):
  _write(tmp_path, __init__="", top="from package import left, right", left="from .bottom import x",
         right="from . import bottom\nimport os", bottom="import package")
  graph = _import_graph(tmp_path, "package")
  assert graph["package.top"] == {"package.left", "package.right"}
  assert graph["package.left"] == graph["package.right"] == {"package.bottom"}
  assert _circle(graph) == []
