# SPDX-License-Identifier: Apache-2.0
"""Loads the C++ of the plugin, which is compiled for one minor version of TensorFlow."""

import importlib.machinery
import importlib.util
import pathlib
import sys

from tensorflow.python.framework import versions

from tensorflow_staging import built_for

# The module that the Python code of stages imports.
_MODULE = "tensorflow_staging.python.pywrap._pywrap_staging"


def load() -> None:
  """Loads the library, which registers its ops, kernels and graph passes.

  Raises:
    ImportError: If it was built for another TensorFlow than the imported one.
  """
  if _MODULE in sys.modules:
    return
  imported = versions.VERSION
  if imported.split(".")[:2] != built_for.TENSORFLOW.split(".")[:2]:
    raise ImportError(
        f"tensorflow_staging {built_for.PLUGIN} was built for TensorFlow {_minor(built_for.TENSORFLOW)}, and the"
        f" imported one is {imported}. Install the one that it was built for: pip install"
        f" 'tensorflow=={_minor(built_for.TENSORFLOW)}.*'; or the plugin for the imported one, if there is one:"
        f" ci/build_plugin.sh --tensorflow={_minor(imported)}")
  path = pathlib.Path(__file__).parent / "_pywrap_staging.so"
  loader = importlib.machinery.ExtensionFileLoader(_MODULE, str(path))
  spec = importlib.util.spec_from_file_location(_MODULE, path, loader=loader)
  module = importlib.util.module_from_spec(spec)
  loader.exec_module(module)
  sys.modules[_MODULE] = module
  from tensorflow_staging.python import pywrap  # pylint: disable=g-import-not-at-top
  pywrap._pywrap_staging = module  # pylint: disable=protected-access


def _minor(version: str) -> str:
  return ".".join(version.split(".")[:2])
