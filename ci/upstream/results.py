# SPDX-License-Identifier: Apache-2.0
"""The results of TensorFlow's tests, test by test: read, kept, compared."""

from __future__ import annotations

import json
import pathlib
import xml.etree.ElementTree

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

# For a test file, each test's name and its result.
FileResults = dict[str, str]


def read_junit(path: pathlib.Path) -> FileResults:
  """Reads what absl's test runner wrote.

  A test with sub-tests appears once for each of them; it failed if one did.
  """
  results: FileResults = {}
  for case in xml.etree.ElementTree.parse(path).iter("testcase"):
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
  """Writes a record, one line for each test file; skipped tests are not kept."""
  lines = []
  for file, tests in sorted(results.items()):
    kept = {
        kind: sorted(name for name, result in tests.items() if result == kind) for kind in (PASSED, FAILED)
    }
    lines.append(f"{json.dumps(file)}: {json.dumps(kept)}")
  path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def load(path: pathlib.Path) -> dict[str, FileResults]:
  """Reads a record that `save` wrote."""
  return {
      file: {name: kind for kind, names in kinds.items() for name in names}
      for file, kinds in json.loads(path.read_text()).items()
  }


def regressions(record: dict[str, FileResults], now: dict[str, FileResults]) -> list[str]:
  """What passed in the record and does not pass now, or fails now and is not known to.

  Args:
    record: The results of the stock wheel.
    now: Those to judge; of each file that was run.

  Returns:
    One line for each test.
  """
  found = []
  for file, tests in sorted(now.items()):
    known = record.get(file)
    if known is None:
      found.append(f"{file}: the record of the stock wheel does not have it")
      continue
    for name, result in sorted(known.items()):
      if result == PASSED and tests.get(name) != PASSED:
        found.append(f"{file}: {name} passes on the stock wheel, here it is {tests.get(name, 'missing')}")
    for name, result in sorted(tests.items()):
      if result == FAILED and name not in known:
        found.append(f"{file}: {name} fails, and did not run on the stock wheel")
  return found
