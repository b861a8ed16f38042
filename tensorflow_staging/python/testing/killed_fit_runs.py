# SPDX-License-Identifier: Apache-2.0
"""Kills a `fit` of killed_fit.py several times, and compares it with one that was never killed and has no backups."""

import json
import pathlib
import random
from collections.abc import Callable
from typing import Any

# Each with what the processes are to be killed after. The first one is killed after the first step of an epoch: with a
# backup that was written after the epoch's last step. Together they make fewer steps than the `fit` has.
_random = random.Random(1)
KILLS = {
    "finite": (13, *_random.sample(range(2, 12), 2)),
    "endless": (9, _random.randrange(2, 12)),
    "unknown": (13, _random.randrange(2, 12)),
    # 10 steps an epoch.
    "mirrored": (11, _random.randrange(2, 10), _random.randrange(2, 10)),
    "one_device": (13, _random.randrange(2, 12)),
}
STRATEGIES = ("mirrored", "one_device")
CASES = [("finite", "plain"), ("mirrored", "plain"), *((length, "staged") for length in KILLS)]
# With a backup after each 4 steps, which counts after one more.
_MOST_REPEATED = 5

Run = Callable[[str, str, pathlib.Path, int], Any]


def check(run: Run, length: str, stage: str, folder: pathlib.Path) -> None:
  """Fails unless the steps, metrics and weights of a killed `fit` are those of one that was never killed.

  Args:
    run: Runs killed_fit.py with its arguments, and returns what it has printed; None if it was killed.
    length: One of `KILLS`.
    stage: "plain" or "staged".
    folder: An empty folder.
  """
  expected = run(length, "without", folder / "whole", 0)
  steps = _steps(folder / "whole.steps")
  assert len(steps) == expected.pop("steps")
  for killed_after in KILLS[length]:
    run(length, stage, folder / "killed", killed_after)
  got = run(length, stage, folder / "killed", 0)
  lines = _steps(folder / "killed.steps")
  assert got.pop("steps") < len(steps), "The last process has begun anew."
  assert len(lines) <= len(steps) + _MOST_REPEATED * len(KILLS[length]), "A process has begun an epoch anew."
  by_place = {(epoch, batch): of_step for epoch, batch, *of_step in steps}
  for epoch, batch, *of_step in lines:
    assert of_step == by_place[epoch, batch], (epoch, batch)
  assert {(epoch, batch) for epoch, batch, *_ in lines} == set(by_place)
  assert got == expected


def _steps(file: pathlib.Path) -> list[list[float]]:
  """Returns the epoch, the batch, and the metrics of each step, in the order in which they were made."""
  return [json.loads(line) for line in file.read_text().splitlines()]
