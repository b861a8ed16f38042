# SPDX-License-Identifier: Apache-2.0
"""How a process that ran a test file ended: with results, or by a crash."""

from __future__ import annotations

import collections
import dataclasses
import pathlib
import signal

import results

_LINES_SHOWN = 40


@dataclasses.dataclass(frozen=True)
class Outcome:
  """The outcome of one run of a test file.

  Attributes:
    tests: The result of each test; empty if the process crashed.
    crash: If the process crashed, how, as in "crashed with SIGSEGV"; otherwise None.
    log: If the process crashed, the last lines that it wrote to stderr.
  """

  tests: results.FileResults
  crash: str | None = None
  log: tuple[str, ...] = ()

  def text(self) -> str:
    """Returns the number of tests of each result, or the crash and what the process wrote before it."""
    if self.crash is None:
      kinds = (results.PASSED, results.FAILED, results.SKIPPED)
      return ", ".join(f"{list(self.tests.values()).count(kind)} {kind}" for kind in kinds)
    if not self.log:
      return f"{self.crash}, and wrote nothing to stderr"
    return "\n    | ".join([f"{self.crash}; the last lines of its stderr:", *self.log])


def ended(status: int, report: pathlib.Path, log: pathlib.Path) -> Outcome:
  """Judges a process that ended by itself.

  A process that a signal ended has crashed, even if it had finished its tests.

  Args:
    status: Its exit status; if a signal ended it, the signal's number, negated.
    report: The XML file of its results.
    log: The file with its stderr.
  """
  if status < 0:
    return crashed(f"crashed with {_signal_name(-status)}", log)
  tests = results.read_junit(report)
  if tests is None:
    return crashed(f"ended with status {status} before its tests", log)
  return Outcome(tests)


def crashed(how: str, log: pathlib.Path) -> Outcome:
  """Returns the outcome of a process that crashed, with the last lines of its stderr."""
  with log.open(errors="replace") as lines:
    return Outcome({}, how, tuple(line.rstrip() for line in collections.deque(lines, _LINES_SHOWN)))


def _signal_name(number: int) -> str:
  try:
    return signal.Signals(number).name
  except ValueError:
    return f"signal {number}"
