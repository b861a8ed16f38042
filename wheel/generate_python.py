# SPDX-License-Identifier: Apache-2.0
"""Generates the Python files that TensorFlow's build generates: op wrappers and the modules of the public API.

Both generators need a TensorFlow that Python can import. This script builds one from symbolic links to the base wheel,
to our files in place of others, and to upstream's generator. The generator writes every `__init__.py` of
`tensorflow._api`, so that our symbols are exported exactly as TensorFlow's are.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pathlib
import re
import sys
import tempfile

import manifest
import type_stubs

_OPS_PREFIX = "TensorBuffer"
_OPS_MODULE = "tensorflow_staging/python/stages/gen_tensor_buffer_ops.py"
_GENERATOR = "tensorflow/python/tools/api/generator"
# `python -m tensorflow.staging` runs the module in the package of the API that `import tensorflow` gives.
_COMMAND_LINE = '''\
"""Runs `python -m tensorflow.staging`."""

import sys

from tensorflow_staging.python.command_line import main

if __name__ == "__main__":
  sys.exit(main.main())
'''
# Completion in a notebook offers what is public, and not what TensorFlow's generator imports for itself.
_PUBLIC_NAMES = '''

def __dir__():
  return [name for name in globals() if not name.startswith("_")]
'''
_EXPORTS = "tensorflow/python/modules_with_exports.py"


def link_tree(
    tree: pathlib.Path, base: pathlib.Path, files: dict[str, pathlib.Path], source: pathlib.Path
) -> None:
  """Creates a folder of symbolic links from which Python can import TensorFlow.

  Args:
    tree: The folder to create.
    base: The unpacked base wheel.
    files: The files to add or to replace, by their paths in the wheel.
    source: TensorFlow's source tree, which has the files that only the generator needs.
  """
  links: dict[str, pathlib.Path] = {}
  for folder, subfolders, names in os.walk(base / "tensorflow"):
    relative = pathlib.Path(folder).relative_to(base)
    if relative == pathlib.Path("tensorflow"):
      subfolders[:] = [name for name in subfolders if name not in ("include", "_api")]
    links |= {str(relative / name): pathlib.Path(folder) / name for name in names}
  links["tensorflow/libtensorflow_cc_base.so.2"] = links.pop("tensorflow/libtensorflow_cc.so.2")
  for name in [_EXPORTS, *(f"{_GENERATOR}/{path.name}" for path in (source / _GENERATOR).glob("*.py"))]:
    links[name] = source / name
  links |= {name: path for name, path in files.items() if not name.startswith("tensorflow/include/")}
  # The root is empty, because the generator must run before there is an API.
  links["tensorflow/__init__.py"] = links[f"{_GENERATOR}/__init__.py"] = pathlib.Path("/dev/null")

  for name, target in links.items():
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target.absolute())


def op_wrappers() -> str:
  """Returns the Python functions of our ops, sorted by name, as TensorFlow's generator writes them.

  Raises:
    RuntimeError: If none of our ops is registered.
  """
  # pylint: disable=g-import-not-at-top
  from tensorflow.core.framework import op_def_pb2
  from tensorflow.python.client import pywrap_tf_session
  from tensorflow.python.framework import _pywrap_python_op_gen

  registered = op_def_pb2.OpList.FromString(
      pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList())
  )
  # TensorFlow lists its ops in the order of a hash table, which differs from process to process.
  ours = sorted((op for op in registered.op if op.name.startswith(_OPS_PREFIX)), key=lambda op: op.name)
  if not ours:
    raise RuntimeError(f"No op named {_OPS_PREFIX}* is registered, so the overlay was not loaded")
  text = _pywrap_python_op_gen.GetPythonWrappers(op_def_pb2.OpList(op=ours).SerializeToString())
  return text.decode() if isinstance(text, bytes) else text


def _bzl_list(path: pathlib.Path, name: str) -> list[str]:
  """Reads a list of strings from a .bzl file of upstream; raises ValueError if the file does not have it."""
  match = re.search(rf"^{name} = \[(.*?)^\]", path.read_text(), re.MULTILINE | re.DOTALL)
  if not match:
    raise ValueError(f"{path} has no list {name}; find where upstream moved it")
  return re.findall(r'^\s*"([^"]+)",', match.group(1), re.MULTILINE)


def generate_api(source: pathlib.Path, lists: pathlib.Path, out: pathlib.Path) -> None:
  """Writes `_api/v1`, `_api/v2` and the two roots.

  Args:
    source: TensorFlow's source tree.
    lists: The folder with the .bzl files that list the API's packages.
    out: The folder to write, which becomes `tensorflow/` in the wheel.
  """
  # pylint: disable=g-import-not-at-top
  from tensorflow.python.tools.api.generator import create_python_api

  api_gen = source / _GENERATOR / "api_gen.bzl"
  packages = _bzl_list(api_gen, "TENSORFLOW_API_GEN_PACKAGES") + ["tensorflow_staging.python"]
  for package in packages:
    importlib.import_module(package)

  modules = {
      1: _bzl_list(lists / "api_init_files_v1.bzl", "TENSORFLOW_API_INIT_FILES_V1"),
      2: _bzl_list(lists / "api_init_files.bzl", "TENSORFLOW_API_INIT_FILES"),
  }
  templates = {
      1: str(source / "tensorflow/compat_template_v1.__init__.py"),
      2: str(source / "tensorflow/compat_template.__init__.py"),
  }
  roots = {
      1: str(source / "tensorflow/api_template_v1.__init__.py"),
      2: str(source / "tensorflow/api_template.__init__.py"),
  }
  for version in (1, 2):
    folder = out / f"_api/v{version}"
    files = [f"v{version}.py" if name == "__init__.py" else name for name in modules[version]]
    for compat in (1, 2):
      files += [f"compat/v{compat}/{name}" for name in modules[compat]]
      for nested in (1, 2):
        files += [f"compat/v{compat}/compat/v{nested}/{name}" for name in ("__init__.py", "compat/__init__.py")]
    create_python_api.create_primary_api_files(
        output_files=[str(folder / name) for name in files],
        packages=packages,
        packages_to_ignore=["tensorflow_staging.python.stages.gen_"],
        root_init_template=roots[version],
        output_dir=str(folder),
        output_package=f"tensorflow._api.v{version}",
        api_name="tensorflow",
        api_version=version,
        compat_api_versions=[1, 2],
        compat_init_templates=[templates[1], templates[2]],
        lazy_loading=False,
        use_relative_imports=True,
    )
    (folder / "__init__.py").touch()
    (folder / "staging/__main__.py").write_text(_COMMAND_LINE)
    root = (folder / f"v{version}.py").read_text()
    (out / f"_root_v{version}.py").write_text(
        root.replace("from . import", f"from ._api.v{version} import")
    )
  (out / "_api/__init__.py").touch()
  for path in sorted((out / "_api").rglob("*.py")):
    path.write_text(path.read_text() + type_stubs.public_names(path.read_text()))
  for path in sorted((out / "_api").rglob("staging/__init__.py")):
    path.write_text(path.read_text() + _PUBLIC_NAMES)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--base", type=pathlib.Path, required=True, help="the unpacked base wheel")
  parser.add_argument("--source", type=pathlib.Path, required=True, help="TensorFlow's source tree")
  parser.add_argument("--api_lists", type=pathlib.Path, required=True, help="the folder with the API's package lists")
  parser.add_argument("--manifest", type=pathlib.Path, required=True, help="the list of the files to add or to replace")
  parser.add_argument("--default_api_version", choices=["1", "2"], required=True, help="the root that checkers see")
  parser.add_argument("--site_packages", type=pathlib.Path, required=True, help="the packages that TensorFlow imports")
  parser.add_argument("--out", type=pathlib.Path, required=True, help="the folder for the generated files")
  arguments = parser.parse_args()

  out = arguments.out.absolute()
  os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
  files = manifest.read(arguments.manifest)
  ours = [path for name, path in files.items() if name.startswith("tensorflow_staging/") and name.endswith(".py")]
  for name, text in type_stubs.stubs(ours, arguments.default_api_version).items():
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / name).write_text(text)
  with tempfile.TemporaryDirectory() as folder:
    tree = pathlib.Path(folder)
    link_tree(tree, arguments.base, files, arguments.source)
    sys.path[:0] = [folder, str(arguments.site_packages.absolute())]

    wrappers = out / _OPS_MODULE
    wrappers.parent.mkdir(parents=True)
    wrappers.write_text(op_wrappers())
    (tree / _OPS_MODULE).symlink_to(wrappers)
    generate_api(arguments.source.absolute(), arguments.api_lists, out / "tensorflow")


if __name__ == "__main__":
  main()
