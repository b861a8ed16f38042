# SPDX-License-Identifier: Apache-2.0
"""Finds the libraries of this machine that programs need, and that a bare machine may lack."""

from __future__ import annotations

import pathlib
import re
import subprocess
from collections.abc import Iterable

import elf

# Every machine with glibc and with NVIDIA's driver has these, and others must not replace them.
_EVERYWHERE = re.compile(
    r"ld-linux-x86-64\.so\.2|lib(c|m|pthread|dl|rt|util|resolv|anl|mvec|nss_\w+)\.so\.\d|lib(cuda|nvidia-ml)\.so\.1")


class Needs:
  """What a set of programs and libraries needs from a machine.

  Args:
    files: The programs and libraries.

  Attributes:
    libraries: The libraries of this machine that they need, directly or not, by the names under which they are needed.
    glibc: The oldest version of glibc with which they all can run.

  Raises:
    ValueError: If this machine lacks a library that one of them needs.
  """

  def __init__(self, files: Iterable[pathlib.Path]):
    self.libraries: dict[str, pathlib.Path] = {}
    self.glibc = (2, 0)
    files = list(files)
    own = {file.name for file in files}
    installed = _installed()
    while files:
      file = files.pop()
      binary = elf.Elf(file.read_bytes())
      for version in binary.required_versions():
        if match := re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version):
          self.glibc = max(self.glibc, (int(match[1]), int(match[2])))
      for name in binary.needed():
        if name in own or name in self.libraries or _EVERYWHERE.fullmatch(name):
          continue
        if name not in installed:
          raise ValueError(f"{file} needs {name}, which is neither in the kit nor on this machine")
        self.libraries[name] = installed[name]
        files.append(installed[name])


def _installed() -> dict[str, pathlib.Path]:
  """Returns this machine's 64-bit libraries by name."""
  printed = subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True, text=True, timeout=30).stdout
  found = re.findall(r"^\s+(\S+) \(libc6,x86-64[^)]*\) => (\S+)$", printed, re.MULTILINE)
  # The first one is the one that the loader takes.
  return {name: pathlib.Path(path) for name, path in reversed(found)}
