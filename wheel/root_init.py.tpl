# SPDX-License-Identifier: Apache-2.0
"""A fork of TensorFlow with pipeline staging.

The environment variable TF_API_VERSION chooses the API when a process first imports this module: "1" gives TensorFlow
1's API and "2" TensorFlow 2's; the default is "%{api_version}". TensorFlow's own generator writes both roots; this file
only chooses between them.
"""

import importlib.machinery as _machinery
import os as _os
import sys as _sys
import typing as _typing

_version = _os.environ.get("TF_API_VERSION", "%{api_version}")
if _version not in ("1", "2"):
  raise ImportError(f'TF_API_VERSION is "{_version}"; allowed are "1" and "2".')

if _typing.TYPE_CHECKING:
  from tensorflow._root_v%{api_version} import *


def _interpreter_arguments():
  if _sys.version_info >= (3, 10):
    return _sys.orig_argv
  try:
    with open("/proc/self/cmdline", encoding="utf-8", errors="replace") as file:
      return file.read().split("\0")
  except OSError:
    return []


# `python -m tensorflow.staging` imports this package before it can choose what TensorFlow logs on import.
_is_command = _sys.argv[:1] == ["-m"] and "tensorflow.staging" in _interpreter_arguments()
if _is_command:
  _os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

if _version == "1":
  from tensorflow_staging.python.api import version_2_packages as _version_2_packages

  _version_2_packages.install()

# Executes the root as this module instead of importing it as another one, because the root sets `__path__` and other
# attributes of `tensorflow` itself.
try:
  _machinery.SourceFileLoader(
      __name__, _os.path.join(_os.path.dirname(__file__), f"_root_v{_version}.py")
  ).exec_module(_sys.modules[__name__])
except ImportError as _error:
  if not _is_command:
    raise
  from tensorflow_staging.python.doctor import failed_import as _failed_import

  _sys.exit(_failed_import.report(_error))

if _version == "1":
  from tensorflow_staging.python.api import version_2_names as _version_2_names

  _version_2_names.install(_sys.modules[__name__])

from tensorflow_staging.python.deeprec import missing_names as _missing_names  # noqa: E402  # Needs the whole API.

_missing_names.install(_sys.modules[__name__])
