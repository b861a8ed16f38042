# SPDX-License-Identifier: Apache-2.0
"""Reads the manifest: the list of files that the build adds to the base wheel or replaces in it.

Each line is `destination<TAB>source`; the destination is a path in the wheel.
"""

from __future__ import annotations

import pathlib


def read(path: pathlib.Path) -> dict[str, pathlib.Path]:
  """Reads a manifest.

  Args:
    path: The manifest.

  Returns:
    Each source by its destination.

  Raises:
    ValueError: If two sources have the same destination.
  """
  files: dict[str, pathlib.Path] = {}
  for line in path.read_text().splitlines():
    destination, source = line.split("\t")
    if destination in files:
      raise ValueError(f"{destination} has two sources: {files[destination]} and {source}")
    files[destination] = pathlib.Path(source)
  return files
