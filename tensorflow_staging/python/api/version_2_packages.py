# SPDX-License-Identifier: Apache-2.0
"""Gives TensorFlow 2's root to the packages that are written for it, while programs have TensorFlow 1's.

The official wheel has only TensorFlow 2's root, so its packages may say `import tensorflow as tf` and mean that one.
The root of a program cannot serve them: under the same names, `tf.losses` and others have what belongs to version 1.

This module is imported before there is any root, so it imports nothing of TensorFlow.
"""

import builtins
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any
from typing import Optional

from tensorflow_staging.python.api import version_2_names

_ROOT = "tensorflow"

# The packages that the wheel requires and that have such modules.
PACKAGES = frozenset({"keras", "tensorboard", "tensorflow_estimator", "tensorflow_io_gcs_filesystem"})


class _Version2Root(types.ModuleType):
  """TensorFlow 2's root: `tensorflow.compat.v2`, and what only a root has.

  Looks up each attribute when it is used, because a package may be imported while TensorFlow itself is.
  """

  _major_api_version = 2

  def __getattr__(self, name: str) -> Any:
    root = sys.modules[_ROOT]
    # `compat` of `compat.v2` is another object, and the files of both roots are in one folder.
    if name in ("compat", "__file__", "__path__"):
      return getattr(root, name)
    try:
      return getattr(root.compat.v2, name)
    except AttributeError:
      # A root also has its packages that are no API, such as `tensorflow.python`.
      package = sys.modules.get(f"{_ROOT}.{name}")
      if package is None:
        raise
      return package

  def __dir__(self) -> list[str]:
    return dir(sys.modules[_ROOT].compat.v2)


_root = _Version2Root(_ROOT, "TensorFlow 2's root.")


def _import(name: str, *arguments: Any, **keywords: Any) -> Any:
  """Imports as `builtins.__import__` does, but the name of the root stands for that of version 2."""
  module = builtins.__import__(name, *arguments, **keywords)
  return _root if name == _ROOT and module is sys.modules.get(_ROOT) else module


class _Finder(importlib.abc.MetaPathFinder):
  """Finds the modules of `PACKAGES` where the other finders do, and lets them import with `_import`."""

  def __init__(self):
    # A package that is imported before TensorFlow has modules already, and one of them is importing TensorFlow now.
    self._early = [module for name, module in sys.modules.items() if _is_served(name)]
    for module in self._early:
      _use_import(module)

  def find_spec(
      self, name: str, path: Optional[Sequence[str]], target: Optional[types.ModuleType] = None
  ) -> Optional[importlib.machinery.ModuleSpec]:
    if not _is_served(name):
      return None
    for module in self._early:
      _replace_root(module)
    for finder in sys.meta_path:
      spec = None if finder is self else finder.find_spec(name, path, target)
      if spec is not None:
        # Other loaders may serve several modules at once.
        if isinstance(spec.loader, importlib.abc.FileLoader):
          _prepare_modules_of(spec.loader)
        return spec
    return None


def _is_served(name: str) -> bool:
  return name.partition(".")[0] in PACKAGES


def _prepare_modules_of(loader: Any) -> None:
  """Lets the module of a loader import with `_import`. The loader remains what it is for all others who ask it."""
  load = loader.exec_module

  def exec_module(module: types.ModuleType) -> None:
    _use_import(module)
    load(module)
    version_2_names.say_in_keras(module)

  loader.exec_module = exec_module


def _use_import(module: types.ModuleType) -> None:
  """Lets whatever a module executes from now on import with `_import`.

  Python takes the function behind the statement `import` from the `__builtins__` of the module that has the statement,
  so no other module notices.
  """
  vars(module)["__builtins__"] = {**vars(builtins), "__import__": _import}


def _replace_root(module: types.ModuleType) -> None:
  root = sys.modules.get(_ROOT)
  names = vars(module)
  for name in [name for name, value in names.items() if value is root]:
    names[name] = _root


def install() -> None:
  """Gives TensorFlow 2's root to all modules of `PACKAGES`: those that will be imported, and those that have been."""
  sys.meta_path.insert(0, _Finder())
