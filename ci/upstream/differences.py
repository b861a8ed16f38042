# SPDX-License-Identifier: Apache-2.0
"""The tests that are known to be worse than on the stock wheel, each under the reason why that is right."""

from __future__ import annotations

import pathlib
import typing
from collections.abc import Iterable

import results

_MAY_PASS = "?"


class Known(typing.NamedTuple):
  """The tests that are known to be worse; those that depend on the speed of threads only sometimes."""

  always: frozenset[results.Test] = frozenset()
  sometimes: frozenset[results.Test] = frozenset()


def load(path: pathlib.Path) -> Known:
  """Reads a list of tests: on each line a file and the name of one of its tests. Lines that begin with # are comments.

  A question mark before the file says that the test may also pass.

  Raises:
    ValueError: If a line names no test.
  """
  always, sometimes = set(), set()
  for number, line in enumerate(path.read_text().splitlines(), 1):
    if not line or line.startswith("#"):
      continue
    file, _, name = line.removeprefix(_MAY_PASS).partition(" ")
    if not name:
      raise ValueError(f"{path.name}:{number} is {line!r}; it has to be a file, a space and the name of a test.")
    (sometimes if line.startswith(_MAY_PASS) else always).add(results.Test(file, name))
  return Known(frozenset(always), frozenset(sometimes))


def unexpected(
    worse: dict[results.Test, str], known: Known, files: Iterable[str]) -> list[str]:
  """Compares what is worse than on the stock wheel with what is known.

  Args:
    worse: The tests that are worse, with what is wrong.
    known: The tests that are known to be worse.
    files: The files that have run.

  Returns:
    A line for each test that is worse and not known, and for each that is known and has run, but is not worse.
  """
  lines = [text for test, text in sorted(worse.items()) if test not in known.always | known.sometimes]
  gone = {test for test in known.always if test.file in set(files)} - worse.keys()
  return lines + [f"{test.file}: {test.name} is listed as a difference, but it is none" for test in sorted(gone)]
