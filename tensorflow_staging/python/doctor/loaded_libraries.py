# SPDX-License-Identifier: Apache-2.0
"""Checks which libraries this process has loaded, and which of them wins."""

import ctypes
import os
import pathlib

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session
from tensorflow.python.framework import errors

from tensorflow_staging.python.doctor import finding
from tensorflow_staging.python.doctor import installed_files

_FRONT = "libtensorflow_cc.so.2"
_OVERLAY = "libtensorflow_cc_staging.so.2"
_BASE = "libtensorflow_cc_base.so.2"

# A function that both the overlay and the base define: tensorflow::DirectSession::Close().
_REPLACED_FUNCTION = "_ZN10tensorflow13DirectSession5CloseEv"


class _SymbolInfo(ctypes.Structure):
  """Dl_info of <dlfcn.h>."""
  _fields_ = (
      ("file_name", ctypes.c_char_p),
      ("file_base", ctypes.c_void_p),
      ("symbol_name", ctypes.c_char_p),
      ("symbol_address", ctypes.c_void_p),
  )


def check_loaded(maps: str, package: pathlib.Path) -> list[finding.Finding]:
  """Checks that a process has loaded the three libraries from the package, and no other copies.

  Args:
    maps: The memory map of the process, as in /proc/self/maps.
    package: The folder of the package tensorflow.
  """
  paths = {os.path.realpath(fields[5]) for line in maps.splitlines() if len(fields := line.split(maxsplit=5)) == 6}
  problems = []
  for name in (_FRONT, _OVERLAY, _BASE):
    expected = os.path.realpath(package / name)
    copies = sorted(path for path in paths if path.endswith(f"/{name}") and path != expected)
    if expected not in paths:
      problems.append(finding.Finding("loaded libraries", f"{expected} is not loaded.", installed_files.REINSTALL))
    if copies:
      problems.append(
          finding.Finding(
              "loaded libraries", f"{copies[0]} is loaded from another place.",
              "Remove that folder from LD_LIBRARY_PATH and LD_PRELOAD."))
  return problems or [finding.Finding("loaded libraries", f"{_OVERLAY}, {_BASE} and {_FRONT}, all of the package.")]


def check_order(front: pathlib.Path) -> list[finding.Finding]:
  """Checks that the loader finds the functions that the fork replaces in the overlay, not in the base.

  Args:
    front: The library that names the other two.
  """
  try:
    library = ctypes.CDLL(os.fspath(front))
    function = ctypes.cast(library[_REPLACED_FUNCTION], ctypes.c_void_p)
  except (OSError, AttributeError) as error:
    return [finding.Finding("order of libraries", f"{front} cannot be used: {error}.", installed_files.REINSTALL)]
  info = _SymbolInfo()
  found = ctypes.CDLL(None).dladdr(function, ctypes.byref(info)) and os.path.basename(info.file_name.decode())
  if found != _OVERLAY:
    return [
        finding.Finding(
            "order of libraries", f"The loader takes the fork's classes from {found}; they must come from {_OVERLAY}.",
            installed_files.REINSTALL)
    ]
  return [finding.Finding("order of libraries", f"{_OVERLAY} wins over {_BASE}.")]


def check_session(target: str = "") -> list[finding.Finding]:
  """Checks that a session is the fork's: it must refuse a wrong setting of SmartStage, which stock TensorFlow ignores.

  Args:
    target: What the session connects to; empty for a local session.
  """
  config = config_pb2.ConfigProto()
  config.graph_options.optimizer_options.do_smart_stage = True
  config.graph_options.optimizer_options.smart_stage_options.capacity = -2
  try:
    with session.Session(target, config=config):
      pass
  except errors.InvalidArgumentError:
    return [finding.Finding("session", "Sessions are the fork's.")]
  return [
      finding.Finding(
          "session", "A session accepts a capacity of -2 for SmartStage, so it is not the fork's.",
          installed_files.REINSTALL)
  ]
