# SPDX-License-Identifier: Apache-2.0
"""What goes over the base wheel: the list that the build writes and its tools read.

Each line is `destination<TAB>source`; the destination is a path in the wheel.
"""

from __future__ import annotations

import pathlib


def read(path: pathlib.Path) -> dict[str, pathlib.Path]:
  """Reads a manifest.

  Raises:
    ValueError: two sources want the same destination.
  """
  files: dict[str, pathlib.Path] = {}
  for line in path.read_text().splitlines():
    destination, source = line.split("\t")
    if destination in files:
      raise ValueError(f"{destination} would come from {files[destination]} and from {source}")
    files[destination] = pathlib.Path(source)
  return files
