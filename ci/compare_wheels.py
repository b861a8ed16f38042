#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says what differs between two wheels.

`ci/compare_wheels.py A.whl B.whl` compares their metadata, their files (by size and CRC-32), and what the loader reads
in the native libraries that differ: the libraries that each needs, its own name, and where it looks for others, but not
their order. "-" is the first wheel, "+" the second. Long lists of files are shortened to folders; --all lists each
file.

The exit status is that of `diff`: 0 if the wheels are equal, 1 if they differ, 2 if one cannot be read.
"""

from __future__ import annotations

import argparse
import collections
import pathlib
import subprocess
import sys
from collections.abc import Iterable

import wheel_contents

# The lines for a list of files, unless each file is listed.
_LINES = 40


def _size(size: int) -> str:
  if size < 10_000:
    return f"{size:,} B"
  return f"{size / 1e3:,.0f} kB" if size < 10_000_000 else f"{size / 1e6:,.0f} MB"


def _count(files: int) -> str:
  return "1 file" if files == 1 else f"{files:,} files"


def _children(names: list[str], folder: str) -> dict[str, list[str]]:
  """Groups a folder's files by the files and folders directly in it."""
  children = collections.defaultdict(list)
  for name in names:
    first, slash, _ = name[len(folder):].partition("/")
    children[folder + first + slash].append(name)
  return children


def grouped(names: Iterable[str], lines: int) -> dict[str, list[str]]:
  """Groups files by folders, in as much detail as fits.

  Args:
    names: The paths of the files.
    lines: The largest number of groups, from 1 up.

  Returns:
    The files of each group. A group's key is a file, or a folder with "/" at its end, which stands for all of its files
    in `names`; "" is the root.
  """
  groups = {"": sorted(names)}
  fixed: set[str] = set()
  while True:
    folders = [key for key in groups if (key == "" or key.endswith("/")) and key not in fixed]
    if not folders:
      return dict(sorted(groups.items()))
    largest = max(folders, key=lambda key: len(groups[key]))
    children = _children(groups[largest], largest)
    if len(groups) - 1 + len(children) > lines:
      fixed.add(largest)
      continue
    del groups[largest]
    groups |= children


def _file_lines(names: set[str], wheels: list[wheel_contents.Wheel], lines: int) -> Iterable[str]:
  """Yields a line for each file or folder, with its sizes in the wheels."""
  for key, members in grouped(names, lines).items():
    sizes = " -> ".join(_size(sum(wheel.files[name].size for name in members)) for wheel in wheels)
    folder = "" if members == [key] else f"{_count(len(members))}, "
    yield f"  {key or '(root)'}: {folder}{sizes}"


def _differences(first: Iterable[str], second: Iterable[str], indent: str) -> list[str]:
  """Returns the values that only one side has, sorted so that the old and the new value of a header are neighbours."""
  counts = collections.Counter(second)
  counts.subtract(collections.Counter(first))
  changed = [(value, count) for value, count in counts.items() if count]
  changed.sort(key=lambda item: (item[0].split(" ")[0], item[1] > 0, item[0]))
  return [f"{indent}{'+' if count > 0 else '-'} {value}" for value, count in changed for _ in range(abs(count))]


def _library_lines(names: set[str], first: wheel_contents.Wheel, second: wheel_contents.Wheel) -> Iterable[str]:
  """Yields what the loader reads in only one wheel's copy of each library; libraries that differ alike share lines."""
  libraries = collections.defaultdict(list)
  for name in sorted(names):
    loading = [wheel.loading(name) if name in wheel.files else None for wheel in (first, second)]
    libraries[tuple(_differences(loading[0] or [], loading[1] or [], "    "))].append(name)
  libraries.pop((), None)
  for lines, alike in libraries.items():
    yield from (f"  {name}" for name in alike)
    yield from lines


def report(first: wheel_contents.Wheel, second: wheel_contents.Wheel, list_all: bool = False) -> list[str]:
  """Returns the lines that say what differs. The first two describe the wheels; there are no others if they are equal.

  Args:
    first: A wheel.
    second: The wheel to compare it with.
    list_all: Whether to list each file, however many there are.
  """
  lines = [
      f"{sign} {wheel.path.name}: {_count(len(wheel.files))}, {_size(wheel.path.stat().st_size)} packed,"
      f" {_size(sum(file.size for file in wheel.files.values()))} unpacked"
      for sign, wheel in (("-", first), ("+", second))
  ]
  metadata = _differences(first.headers, second.headers, "  ")
  if metadata:
    lines += ["", "Metadata", *metadata]
  only_first = first.files.keys() - second.files.keys()
  only_second = second.files.keys() - first.files.keys()
  changed = {name for name in first.files.keys() & second.files.keys() if first.files[name] != second.files[name]}
  for title, names, wheels in (
      ("Files only in -", only_first, [first]),
      ("Files only in +", only_second, [second]),
      ("Files that differ", changed, [first, second]),
  ):
    if names:
      listed = _file_lines(names, wheels, len(names) if list_all else _LINES)
      lines += ["", f"{title}: {len(names):,}", *listed]
  libraries = list(_library_lines(only_first | only_second | changed, first, second))
  if libraries:
    lines += ["", "Native libraries that the loader treats differently", *libraries]
  return lines


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("first", type=pathlib.Path, metavar="A.whl")
  parser.add_argument("second", type=pathlib.Path, metavar="B.whl")
  parser.add_argument("--all", action="store_true", help="list each file")
  arguments = parser.parse_args()
  try:
    with wheel_contents.Wheel(arguments.first) as first, wheel_contents.Wheel(arguments.second) as second:
      lines = report(first, second, arguments.all)
  except (OSError, ValueError, subprocess.CalledProcessError) as error:
    print(f"error: {error}", file=sys.stderr)
    return 2
  print(*lines, sep="\n")
  if len(lines) == 2:
    print("\nThe wheels are equal.")
  return int(len(lines) > 2)


if __name__ == "__main__":
  sys.exit(main())
