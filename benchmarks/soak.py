#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets stages run and be interrupted for a long time, and watches the memory and the threads of the process.

`.venv/bin/python benchmarks/soak.py > benchmarks/soak.md` takes 30 minutes; `--minutes` sets another time, `--quick`
tries whether it works. Exits with status 1 if a record is lost, repeated or misplaced.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile
import threading
import time
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from lib import interrupted_run
from lib import report
from lib.interrupted_run import Account
from lib.interrupted_run import Setting

# By turns.
_SETTINGS = (Setting(False, 1, 1), Setting(True, 2, 4), Setting(False, 8, 4), Setting(True, 1, 4))
_EPOCH = 4000
_QUICK_EPOCH = 400
_INTERRUPTIONS = 4
# How many epochs a graph has before its turn ends.
_EPOCHS = 3
_ROWS = 10
_MIB = 2**20


class Sample(NamedTuple):
  """What the process takes, at one moment."""

  minutes: float
  resident: int
  buffered: int
  threads: int
  taken: int


class Watch:
  """Takes samples, in a thread of its own."""

  def __init__(self, seconds: float):
    self._seconds = seconds
    self._began = time.monotonic()
    self._ends = threading.Event()
    self._thread = threading.Thread(target=self._sample_until_the_end)
    self.samples: list[Sample] = []
    # The run of the turn, and the records of the turns before.
    self.run: interrupted_run.InterruptedRun | None = None
    self.account = Account()

  def __enter__(self) -> Watch:
    self._thread.start()
    return self

  def __exit__(self, *_) -> None:
    self._ends.set()
    self._thread.join()

  @property
  def minutes(self) -> float:
    return (time.monotonic() - self._began) / 60

  def _sample_until_the_end(self) -> None:
    while not self._ends.wait(self._seconds):
      pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
      self.samples.append(
          Sample(
              self.minutes, pages * os.sysconf("SC_PAGE_SIZE"), self._buffered(), len(os.listdir("/proc/self/task")),
              self.account.taken))

  def _buffered(self) -> int:
    try:
      return sum(stage.bytes for stage in tf.staging.stats(self.run.session)) if self.run else 0
    except (RuntimeError, tf.errors.OpError):  # The session was closed meanwhile.
      return 0


def _soak(minutes: float, epoch: int) -> Watch:
  with Watch(min(1.0, minutes * 60 / 40)) as watch, tempfile.TemporaryDirectory() as folder:
    turn = 0
    while watch.minutes < minutes:
      setting = _SETTINGS[turn % len(_SETTINGS)]
      run = interrupted_run.InterruptedRun(setting, pathlib.Path(folder), seed=turn, payload=True)
      with run.running(0, epoch):
        watch.run = run
        begin = 0
        for _ in range(_EPOCHS):
          begin, account = run.epoch(begin, begin + epoch // 2, begin + epoch, _INTERRUPTIONS)
          watch.account = watch.account.plus(account)
        watch.run = None
      turn += 1
  return watch


def _growth(samples: list[Sample]) -> float:
  """Returns how many MiB the resident memory grew in an hour, fitted to the second half of the time."""
  half = [sample for sample in samples if sample.minutes > samples[-1].minutes / 2]
  slope, _ = np.polyfit([sample.minutes / 60 for sample in half], [sample.resident / _MIB for sample in half], 1)
  return float(slope)


def _table(samples: list[Sample]) -> str:
  rows = [("minutes", "resident memory, MiB", "buffers, KiB", "threads", "records taken")]
  for i in np.linspace(0, len(samples) - 1, min(_ROWS + 1, len(samples))).astype(int):
    sample = samples[i]
    rows.append((
        f"{sample.minutes:.1f}", f"{sample.resident / _MIB:,.0f}", f"{sample.buffered / 1024:,.0f}",
        str(sample.threads), f"{sample.taken:,}"))
  return report.markdown(rows, left=0)


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--minutes", type=float, default=30.0)
  parser.add_argument("--quick", action="store_true")
  arguments = parser.parse_args()
  if arguments.quick:
    watch = _soak(0.05, _QUICK_EPOCH)
  else:
    watch = _soak(arguments.minutes, _EPOCH)
  account, samples = watch.account, watch.samples
  print("# Does a long run leave anything behind?\n")
  print(report.command("soak") + "\n")
  print(
      f"In {samples[-1].minutes:.1f} minutes, {account.taken:,} records were taken, {account.lost:,} lost,"
      f" {account.repeated:,} repeated and {account.misplaced:,} misplaced, over {account.initialisations:,}"
      f" initialisations, {account.restarts:,} restarts of a stage and {account.checkpoints:,} checkpoints, each with a"
      f" new session. In the second half, the resident memory grew by {_growth(samples):.1f} MiB an hour.\n")
  print(_table(samples))
  return 0 if account.faultless else 1


if __name__ == "__main__":
  sys.exit(main())
