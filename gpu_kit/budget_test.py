# SPDX-License-Identifier: Apache-2.0
import os
import select
import sys

import budget
import pytest


@pytest.fixture
def run(tmp_path):
  """A function that runs Python code in a budget, and returns the result and what the code printed."""

  def run(
      code: str, share: float = 30, seconds: float = 60, grace: float = 5, **arguments) -> tuple[budget.Result, str]:
    log = tmp_path / "log"
    result = budget.Budget(seconds, reserve=0, grace=grace).run(
        [sys.executable, "-u", "-c", code], share, log, os.environ, tmp_path, **arguments)
    return result, log.read_text() if log.exists() else ""

  return run


def _ends(process: int) -> bool:
  """Waits for the end of a process, which need not be a child of this one."""
  try:
    descriptor = os.pidfd_open(process)
  except ProcessLookupError:
    return True
  try:
    return bool(select.select([descriptor], [], [], 10)[0])
  finally:
    os.close(descriptor)


def test_a_program_that_succeeds(run):
  result, printed = run("import sys; print('out'); print('err', file=sys.stderr)")
  assert result.passed
  assert result.outcome == "passed"
  assert 0 < result.seconds < 30
  assert printed == "out\nerr\n"


def test_lines_are_passed_on_and_kept_when_they_are_printed(run, tmp_path):
  output, seen = tmp_path / "output", []

  def echo(line):
    seen.append(line)
    # All of it is on disk already.
    assert output.read_text().splitlines() == seen

  result, log = run("import sys, time; print('1'); print('2'); print('err', file=sys.stderr); time.sleep(60)", share=2,
                    output=output, echo=echo)
  assert result.outcome == "ended after 2 s, its share of the time"
  assert seen == ["1", "2"]
  assert log == "err\n"


def test_a_program_that_fails(run):
  result, _ = run("import sys; sys.exit(3)")
  assert not result.passed
  assert result.outcome == "failed with status 3"


def test_a_program_that_exceeds_its_share_is_ended(run):
  result, _ = run("import time; time.sleep(60)", share=0.5)
  assert not result.passed
  assert result.outcome == "ended after 0.5 s, its share of the time"
  assert 0.5 <= result.seconds < 6


def test_the_time_that_is_left_bounds_every_share(run):
  result, _ = run("import time; time.sleep(60)", share=30, seconds=1.5, grace=1)
  assert result.outcome == "ended after 0.5 s, its share of the time"


def test_all_processes_of_a_program_are_ended_also_those_that_ignore_a_signal(run):
  code = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child:
  print(os.getpid(), child)
time.sleep(60)
"""
  result, printed = run(code, share=2, grace=0.2)
  assert not result.passed
  assert all(_ends(int(process)) for process in printed.split())
  assert len(printed.split()) == 2


def test_what_a_program_leaves_behind_is_ended(run):
  result, printed = run("import os, time\nchild = os.fork()\nprint(child) if child else time.sleep(60)")
  assert result.passed
  assert _ends(int(printed))


def test_nothing_runs_without_time(run):
  result, printed = run("print('begun')", seconds=0)
  assert result == budget.Result(False, "not run: no time was left", 0)
  assert printed == ""


def test_a_program_that_does_not_exist(tmp_path):
  result = budget.Budget(60).run([tmp_path / "missing"], 30, tmp_path / "log", os.environ, tmp_path)
  assert not result.passed
  assert result.outcome.startswith("could not be started: ")
