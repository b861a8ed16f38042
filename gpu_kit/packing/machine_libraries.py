# SPDX-License-Identifier: Apache-2.0
"""Finds the libraries of this machine that programs need, and that a bare machine may lack."""

from __future__ import annotations

import pathlib
import re
import subprocess
from collections.abc import Iterable

# Every machine with glibc and with NVIDIA's driver has these, and others must not replace them.
_EVERYWHERE = re.compile(
    r"ld-linux-x86-64\.so\.2|lib(c|m|pthread|dl|rt|util|resolv|anl|mvec|nss_\w+)\.so\.\d|lib(cuda|nvidia-ml)\.so\.1")


def needed_by(files: Iterable[pathlib.Path]) -> dict[str, pathlib.Path]:
  """Returns the libraries of this machine that programs and libraries need, directly or not, by their names.

  Args:
    files: The programs and libraries, all of which are in the kit.

  Raises:
    ValueError: If this machine lacks a library that one of them needs.
  """
  files = list(files)
  own = {file.name for file in files}
  printed = subprocess.run(["ldd", *files], capture_output=True, text=True, timeout=600).stdout
  needed = {}
  for name, path in re.findall(r"^\s+(\S+) => (not found|/\S+)", printed, re.MULTILINE):
    if name in own or _EVERYWHERE.fullmatch(name):
      continue
    if path == "not found":
      raise ValueError(f"a library of the kit needs {name}, which is neither in the kit nor on this machine")
    needed[name] = pathlib.Path(path)
  return needed
