# SPDX-License-Identifier: Apache-2.0
"""Finds out which of CUDA's libraries the wheel can call, and makes empty stand-ins for others that it loads.

TensorFlow does not link CUDA: it loads libraries by name and looks functions up by name. A library that neither the
wheel nor another of CUDA's libraries names can therefore never be called.

As a program, it loads all libraries in a folder, and prints a table in Markdown with those that cannot be loaded.
"""

from __future__ import annotations

import ctypes
import mmap
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable

import elf

# The libraries without which TensorFlow registers no GPU. It loads more only when they are needed.
REQUIRED = ("libcudart", "libcublas", "libcublasLt", "libcufft", "libcusolver", "libcusparse", "libcudnn")

# Symbols that linkers add to every library.
_LINKERS_OWN = {"_init", "_fini", "_end", "_edata", "__bss_start"}

# A string of C that can be the name of a function or of a library.
_NAME = re.compile(rb"(?<=\0)[A-Za-z_][\w.]{3,200}(?=\0)")


def names_in(library: pathlib.Path) -> set[str]:
  """Returns all names with which a native library can look up functions and libraries.

  These are the dynamic symbols and the libraries that it needs, and its constant strings that look like names.

  Raises:
    ValueError: If it is not an ELF file.
  """
  with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
    binary = elf.Elf(data)
    names = binary.symbols()[1] | set(binary.needed())
    for section in binary.sections:
      if section.name.startswith(".rodata"):
        # A string may be the first of its section.
        content = b"\0" + data[section.offset:section.offset + section.size]
        names |= {match.decode() for match in _NAME.findall(content)}
  return names


def callable_libraries(libraries: Iterable[pathlib.Path], named: set[str]) -> dict[pathlib.Path, str]:
  """Finds the libraries that can be called.

  Args:
    libraries: CUDA's libraries.
    named: The names in the libraries of the wheel, from `names_in`.

  Returns:
    The libraries that can be called, each with a reason: how many of its functions the wheel names, or which library
    names it.

  Raises:
    ValueError: If one is not an ELF file.
  """
  waiting = list(libraries)
  reasons: dict[pathlib.Path, str] = {}
  for library in waiting:
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
      functions = elf.Elf(data).symbols()[0] & named - _LINKERS_OWN
    if functions:
      reasons[library] = f"the wheel names {len(functions)} of its functions, as {min(functions)}"
  checked: set[pathlib.Path] = set()
  while unchecked := reasons.keys() - checked:
    for caller in unchecked:
      checked.add(caller)
      names = names_in(caller)
      for library in waiting:
        if library not in reasons and (library.name in names or library.name.split(".so")[0] + ".so" in names):
          reasons[library] = f"{caller.name} names it"
  return reasons


def is_required(library: pathlib.Path) -> bool:
  """Whether TensorFlow registers a GPU only if it can load the library."""
  return library.name.split(".so")[0] in REQUIRED


def write_stand_in(library: pathlib.Path) -> None:
  """Replaces a library by one of the same name without functions.

  TensorFlow can load it. A function that TensorFlow does not find in it fails with an internal error of that library.

  Raises:
    CalledProcessError: If the C compiler fails.
    FileNotFoundError: If there is no C compiler.
  """
  library.unlink()
  command = ["gcc", "-shared", "-nostdlib", "-xc", "/dev/null", "-o", library, f"-Wl,-soname,{library.name}"]
  subprocess.run(command, check=True, timeout=60)


def main() -> int:
  """Loads each library in the folder that the first argument names.

  Returns:
    The number of libraries that cannot be loaded.
  """
  failed = []
  libraries = sorted(pathlib.Path(sys.argv[1]).rglob("*.so*"))
  for library in libraries:
    try:
      ctypes.CDLL(str(library))
    except OSError as error:
      failed.append((library.name, error))
  print("| library | result |\n|---|---|")
  print(f"| {len(libraries) - len(failed)} of {len(libraries)} | can be loaded |")
  for name, error in failed:
    print(f"| {name} | {error} |")
  return len(failed)


if __name__ == "__main__":
  sys.exit(main())
