# SPDX-License-Identifier: Apache-2.0
"""Runs TensorFlow's own Python tests on an installed wheel, and compares the results with the stock wheel's.

A test that is worse than on the stock wheel is reported, unless it is listed as a known difference. A known difference
that has gone is reported, too.

A file whose process crashes or takes too long runs once more, when nothing else runs. Each crash is printed, with the
last lines that the process wrote; only the second run counts.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import queue
import shutil
import sys
import tempfile

import differences
import outcome
import results

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tensorflow_staging/python/testing"))

import forks

_HERE = pathlib.Path(__file__).resolve().parent
_SECONDS_PER_FILE = 600
# What a process that took too long gets to write the stacks of its threads.
_SECONDS_FOR_STACKS = 10


def run_file(server: forks.Server, source: pathlib.Path, test: str) -> outcome.Outcome:
  """Runs one test file in a process of its own outside the source tree, and kills every process that it leaves.

  Args:
    server: Makes the process.
    source: TensorFlow's source tree.
    test: The file's path relative to tensorflow/python.

  Returns:
    The outcome. Its results are empty if the process crashed or took too long.
  """
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    copy = folder / "tests" / test
    copy.parent.mkdir(parents=True)
    shutil.copy(source / "tensorflow/python" / test, copy)
    runfiles = folder / "srcdir/org_tensorflow"
    runfiles.mkdir(parents=True)
    (runfiles / "tensorflow").symlink_to(source / "tensorflow")
    (folder / "tmp").mkdir()
    report = folder / "report.xml"
    log = folder / "stderr.txt"
    environment = {
        "TEST_TMPDIR": str(folder / "tmp"),
        "TEST_SRCDIR": str(folder / "srcdir"),
        "XML_OUTPUT_FILE": str(report),
    }
    status = server.run(
        str(copy), folder=str(folder), stderr=str(log), environment=environment, seconds=_SECONDS_PER_FILE,
        more_seconds=_SECONDS_FOR_STACKS)
    if status is None:
      return outcome.crashed(f"took longer than {_SECONDS_PER_FILE} s", log)
    return outcome.ended(status, report, log)


def new_server(python: str, source: pathlib.Path, sessions: str) -> forks.Server:
  """Starts an interpreter from which test files are forked.

  Args:
    python: The interpreter of the environment under test.
    source: TensorFlow's source tree.
    sessions: How run_as_v1.py changes all sessions.
  """
  environment = {
      **os.environ,
      # Otherwise TensorFlow asks the processor, and skips the tests of oneDNN on some.
      "TF_ENABLE_ONEDNN_OPTS": "1",
      "CUDA_VISIBLE_DEVICES": "",
      # Writes the threads' stacks when a signal ends the process.
      "PYTHONFAULTHANDLER": "1",
      # session_test counts log lines, so logging must be on.
      "TF_CPP_MIN_LOG_LEVEL": "0",
  }
  return forks.Server([python, str(_HERE / "run_as_v1.py"), sessions, str(source)], environment)


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--python", required=True, help="the interpreter of the environment under test")
  parser.add_argument("--source", type=pathlib.Path, required=True, help="TensorFlow's source tree")
  parser.add_argument(
      "--list", type=pathlib.Path, required=True, nargs="+", help="files that list the test files, one per line")
  parser.add_argument("--stock-results", type=pathlib.Path, required=True, help="the stock wheel's results")
  parser.add_argument("--write", action="store_true", help="write these results instead of comparing with them")
  changes = ("plain", "stage_pools", "smart_sessions")
  parser.add_argument("--sessions", choices=changes, default="plain", help="how to change all sessions")
  parser.add_argument("--differences", type=pathlib.Path, help="a file that lists the known differences")
  arguments = parser.parse_args()

  source = arguments.source.resolve()
  lines = [line for path in arguments.list for line in path.read_text().splitlines()]
  tests = [line for line in lines if line and not line.startswith("#")]
  outcomes: dict[str, outcome.Outcome] = {}
  with contextlib.ExitStack() as stack:
    # Two at a time, because most tests wait about as long as they compute.
    servers: queue.SimpleQueue[forks.Server] = queue.SimpleQueue()
    for _ in range(2):
      servers.put(stack.enter_context(new_server(arguments.python, source, arguments.sessions)))

    def run(test: str) -> outcome.Outcome:
      server = servers.get()
      try:
        return run_file(server, source, test)
      finally:
        servers.put(server)

    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
      jobs = {pool.submit(run, test): test for test in tests}
      for job in concurrent.futures.as_completed(jobs):
        outcomes[jobs[job]] = job.result()
        print(f"{jobs[job]}: {job.result().text()}", flush=True)
    crashes = {test: first for test, first in outcomes.items() if first.crash}
    for test in crashes:
      outcomes[test] = run(test)
      print(f"{test}, repeated: {outcomes[test].text()}", flush=True)

  now = {test: last.tests for test, last in outcomes.items()}
  found = []
  for test, first in sorted(crashes.items()):
    if outcomes[test].crash:
      found.append(f"{test} crashed: first it {first.crash}, then it {outcomes[test].crash}")
    else:
      print(f"{test} {first.crash}, but not when repeated")
  if arguments.write:
    results.save(arguments.stock_results, now)
  else:
    ended = {test: tests for test, tests in now.items() if not outcomes[test].crash}
    worse = results.regressions(results.load(arguments.stock_results), ended)
    known = differences.load(arguments.differences) if arguments.differences else differences.Known()
    found += differences.unexpected(worse, known, ended)
  for line in found:
    print(line)
  if not arguments.write:
    total = sum(list(tests.values()).count(results.PASSED) for tests in now.values())
    expected = len(worse.keys() & (known.always | known.sometimes))
    print(
        f"TensorFlow's own tests: {total} pass in {len(now)} files; {expected} differ from the stock wheel as expected,"
        f" {len(found)} otherwise."
    )
  return 1 if found else 0


if __name__ == "__main__":
  sys.exit(main())
