# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of a file in one process, which has another API than the tests, and tells what came of each.

A file of cases ends with `cases.main(globals())`. Its functions that begin with `case_` are the cases. A test runs the
file once, and then checks the outcome of each case (`outcomes`); `names_in` lists them without running anything.
"""

import ast
import json
import os
import pathlib
import sys
import traceback
from typing import Any

# How often each case runs. One that fails now and then needs many.
REPEATS = int(os.environ.get("STAGING_REPEATS", "1"))
# How many threads the stages of TensorFlow 2 have where a case does not say; 0 leaves it to them.
THREADS = int(os.environ.get("STAGING_THREADS", "0"))


def main(namespace: dict[str, Any], goes_on: bool = True) -> None:
  """Runs the cases, and prints what came of each: a line of JSON with its name and its error, or an empty string.

  Args:
    namespace: What the file has defined.
    goes_on: Whether the next case runs after one has failed. If not, the process ends.
  """
  wanted = sys.argv[1:]
  if THREADS:
    _use_threads(THREADS)
  for name, case in list(namespace.items()):
    if not name.startswith("case_") or (wanted and name not in wanted):
      continue
    error = ""
    try:
      for _ in range(REPEATS):
        case()
    except BaseException:  # pylint: disable=broad-except
      error = traceback.format_exc()
    print(json.dumps([name, error]), flush=True)
    if error and not goes_on:
      raise SystemExit(1)


def _use_threads(number: int) -> None:
  from tensorflow_staging.python.ahead import ahead  # pylint: disable=import-outside-toplevel

  make_step = ahead.AheadStep.__init__

  def make_step_with_threads(self, step, capacity, num_threads, *args, **kwargs):
    make_step(self, step, capacity, number if num_threads is None else num_threads, *args, **kwargs)

  ahead.AheadStep.__init__ = make_step_with_threads


def names_in(path: pathlib.Path) -> list[str]:
  """Returns the names of the cases of a file."""
  return [
      node.name for node in ast.parse(path.read_text()).body
      if isinstance(node, ast.FunctionDef) and node.name.startswith("case_")
  ]


def outcomes(output: str) -> dict[str, str]:
  """Returns the error of each case, by name, of what a file has printed."""
  return dict(json.loads(line) for line in output.splitlines() if line.startswith('["case_'))
