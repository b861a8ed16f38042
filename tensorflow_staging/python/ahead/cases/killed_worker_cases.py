# SPDX-License-Identifier: Apache-2.0
"""A worker of `MultiWorkerMirroredStrategy` that is killed and comes back, with stages; run by ahead/ahead_test.py."""

import pathlib
import signal
import tempfile

import cases
import killed_workers
import loopback


def case_a_worker_that_is_killed_comes_back():
  program = str(pathlib.Path(__file__).with_name("killed_workers.py"))
  killed = [killed_workers.LOST, -signal.SIGKILL]
  with tempfile.TemporaryDirectory() as folder:
    for what, expected in (("loop", killed), ("fit", killed), ("end", [0, 0])):
      done = loopback.run_workers([program, what, folder], 2, seconds=150, seconds_alone=60)
      assert [status for status, _ in done] == expected, (what, done)


if __name__ == "__main__":
  cases.main(globals())
