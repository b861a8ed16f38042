# SPDX-License-Identifier: Apache-2.0
"""Reads, saves and compares the results of TensorFlow's tests, one result per test."""

from __future__ import annotations

import json
import pathlib
import typing
import xml.etree.ElementTree

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

# The result of each test in a file, by the test's name.
FileResults = dict[str, str]


class Test(typing.NamedTuple):
  """A test: its file, relative to tensorflow/python, and its class and name in there."""

  file: str
  name: str


def read_junit(path: pathlib.Path) -> FileResults | None:
  """Reads the XML file of absl's test runner.

  The file lists a test with sub-tests once for each of them; the test counts as failed if one of them failed.

  Returns:
    The result of each test; None if the file is missing, empty or cut short: absl opens it before the first test and
    writes it after the last one, so the process ended in between.
  """
  try:
    document = xml.etree.ElementTree.parse(path)
  except (FileNotFoundError, xml.etree.ElementTree.ParseError):
    return None
  results: FileResults = {}
  for case in document.iter("testcase"):
    name = f"{case.get('classname', '').rsplit('.', 1)[-1]}.{case.get('name')}"
    if case.find("failure") is not None or case.find("error") is not None:
      result = FAILED
    elif case.find("skipped") is not None or case.get("status") == "notrun":
      result = SKIPPED
    else:
      result = PASSED
    if results.get(name) != FAILED:
      results[name] = result
  return results


def save(path: pathlib.Path, results: dict[str, FileResults]) -> None:
  """Saves the results as JSON, one line for each test file, without skipped tests."""
  lines = []
  for file, tests in sorted(results.items()):
    kept = {
        kind: sorted(name for name, result in tests.items() if result == kind) for kind in (PASSED, FAILED)
    }
    lines.append(f"{json.dumps(file)}: {json.dumps(kept)}")
  path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def load(path: pathlib.Path) -> dict[str, FileResults]:
  """Reads the results that `save` wrote."""
  return {
      file: {name: kind for kind, names in kinds.items() for name in names}
      for file, kinds in json.loads(path.read_text()).items()
  }


def regressions(stock: dict[str, FileResults], now: dict[str, FileResults]) -> dict[Test, str]:
  """Finds the tests that are worse than on the stock wheel.

  A test is worse if it passed on the stock wheel and does not pass now, or if it fails now and the stock wheel has no
  result for it.

  Args:
    stock: The results on the stock wheel.
    now: The results to judge, of every file that was run.

  Returns:
    A line for each test that is worse; for a file without results on the stock wheel, one line under an empty name.
  """
  found = {}
  for file, tests in now.items():
    known = stock.get(file)
    if known is None:
      found[Test(file, "")] = f"{file}: there are no results of the stock wheel; run ci/upstream_tests.sh record"
      continue
    for name, result in known.items():
      if result == PASSED and tests.get(name) != PASSED:
        here = tests.get(name, "missing")
        found[Test(file, name)] = f"{file}: {name} passes on the stock wheel, but is {here} here"
    for name, result in tests.items():
      if result == FAILED and name not in known:
        found[Test(file, name)] = f"{file}: {name} fails, and did not run on the stock wheel"
  return found
