# SPDX-License-Identifier: Apache-2.0
"""Zeroes the GPU code in native libraries that a chip does not need.

That changes neither the headers nor any offset, but a zeroed library packs to a fraction.
"""

from __future__ import annotations

import collections
import mmap
import pathlib
from collections.abc import Iterable
from typing import NamedTuple

import chips
import fatbin


class Kept(NamedTuple):
  """What keep_only() did to a library.

  Attributes:
    containers: The number of containers for each code that was kept in them; the key () stands for containers without
      any code that runs on the chips.
    before: The bytes of code there were.
    after: The bytes of code that were not zeroed.
  """

  containers: dict[tuple[chips.Code, ...], int]
  before: int
  after: int


def keep_only(path: pathlib.Path, target: Iterable[chips.Chip]) -> Kept:
  """Zeroes the code of a library that the driver would not take for any of the chips. Changes the file.

  That is all code of an input of CUDA's linker, which nothing loads.

  Args:
    path: The library.
    target: The chips.

  Raises:
    ValueError: As `fatbin.containers` does. The file is unchanged then.
  """
  target = list(target)
  with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
    found = list(fatbin.containers(data))
    counts: collections.Counter[tuple[chips.Code, ...]] = collections.Counter()
    after = 0
    for container in found:
      codes = () if container.linkable else (entry.code for entry in container.entries)
      kept = fatbin.needed(codes, target)
      counts[tuple(sorted(kept))] += 1
      for entry in container.entries:
        if entry.code in kept:
          after += entry.size
        else:
          data[entry.offset:entry.offset + entry.size] = bytes(entry.size)
    return Kept(dict(counts), sum(entry.size for container in found for entry in container.entries), after)
