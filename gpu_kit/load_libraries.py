# SPDX-License-Identifier: Apache-2.0
"""Loads all libraries in a folder, and prints a table in Markdown with those that cannot be loaded.

What lacks nothing but NVIDIA's driver does not count as a failure: a machine without a GPU has none.
"""

from __future__ import annotations

import ctypes
import pathlib
import sys

_DRIVER = "libcuda.so.1"


def main() -> int:
  """Loads each library in the folder that the first argument names.

  Returns:
    The number of libraries that cannot be loaded.
  """
  failed, waiting = [], []
  libraries = sorted(pathlib.Path(sys.argv[1]).rglob("*.so*"))
  for library in libraries:
    try:
      ctypes.CDLL(str(library))
    except OSError as error:
      (waiting if str(error).startswith(f"{_DRIVER}: ") else failed).append((library.name, error))
  print("| library | result |\n|---|---|")
  print(f"| {len(libraries) - len(failed) - len(waiting)} of {len(libraries)} | can be loaded |")
  for name, error in failed + waiting:
    print(f"| {name} | {error} |")
  return len(failed)


if __name__ == "__main__":
  sys.exit(main())
