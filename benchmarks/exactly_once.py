#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts how often each of many records arrives, through stages that are interrupted all the time.

`.venv/bin/python benchmarks/exactly_once.py > benchmarks/exactly_once.md` shares 10 million records among 12 kinds of
stages; `--records` sets another number, `--quick` tries whether it works. Exits with status 1 if a record is lost,
repeated or misplaced.
"""

from __future__ import annotations

import argparse
import itertools
import pathlib
import sys
import tempfile
import time

from lib import interrupted_run
from lib import report
from lib.interrupted_run import Account
from lib.interrupted_run import Setting

_SETTINGS = [
    Setting(smart_stage, producers, consumers)
    for smart_stage, producers, consumers in itertools.product((False, True), (1, 2, 8), (1, 4))
]
_RECORDS = 10_000_000
_QUICK_RECORDS = 15_000
# The data of an epoch, of which a change to other data gives up a part, and how often it is interrupted.
_EPOCH = 25_000
_INTERRUPTIONS = 5
_HEADING = (
    "stage", "producers", "consumers", "records taken", "lost", "repeated", "misplaced", "given up", "initialisations",
    "restarts", "checkpoints", "seconds")


def _run(setting: Setting, records: int) -> tuple[Account, float]:
  """Sends at least so many records through one kind of stage; returns the account, and the seconds it took."""
  began = time.monotonic()
  account = Account()
  length = min(_EPOCH, records)
  with tempfile.TemporaryDirectory() as folder:
    run = interrupted_run.InterruptedRun(setting, pathlib.Path(folder), seed=hash(setting))
    with run.running(0, length):
      begin = 0
      while account.taken < records:
        begin, more = run.epoch(begin, begin + length // 2, begin + length, _INTERRUPTIONS)
        account = account.plus(more)
  return account, time.monotonic() - began


def _row(setting: Setting, account: Account, seconds: float) -> tuple[str, ...]:
  names = [
      account.taken, account.lost, account.repeated, account.misplaced, account.given_up, account.initialisations,
      account.restarts, account.checkpoints
  ]
  return (
      setting.stage, str(setting.producers), str(setting.consumers), *(f"{number:,}" for number in names),
      f"{seconds:,.0f}")


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--records", type=int, default=_RECORDS)
  parser.add_argument("--quick", action="store_true")
  arguments = parser.parse_args()
  records = _QUICK_RECORDS if arguments.quick else arguments.records
  print("# Does each record arrive exactly once?\n")
  print(f"`.venv/bin/python benchmarks/exactly_once.py --records={records}`\n\n{report.run()}\n")
  print(report.markdown([_HEADING]))
  total = Account()
  for setting in _SETTINGS:
    if arguments.quick and setting.producers == 2:
      continue
    account, seconds = _run(setting, -(-records // len(_SETTINGS)))
    total = total.plus(account)
    print(report.markdown([_HEADING, _row(setting, account, seconds)]).splitlines()[-1], flush=True)
  print(
      f"\nTogether, {total.taken:,} records were taken, {total.lost:,} lost, {total.repeated:,} repeated and"
      f" {total.misplaced:,} misplaced.")
  return 0 if total.faultless else 1


if __name__ == "__main__":
  sys.exit(main())
