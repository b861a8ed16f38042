# SPDX-License-Identifier: Apache-2.0
"""Loads all libraries in a folder, and prints a table in Markdown with those that cannot be loaded."""

from __future__ import annotations

import ctypes
import pathlib
import sys


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
