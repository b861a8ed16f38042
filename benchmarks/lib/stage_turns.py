# SPDX-License-Identifier: Apache-2.0
"""Compares two settings of a stage, in sessions that are open together and take turns."""

from __future__ import annotations

import time
from typing import NamedTuple

from lib import autotune_cases as cases
from lib import blocks


class Effort(NamedTuple):
  """How long to measure."""

  # After this long, a stage that chooses must have chosen.
  settling_seconds: float
  warm_up_seconds: float
  seconds: float
  # In how many turns each pair of sessions is compared.
  turns: int


FULL = Effort(settling_seconds=20, warm_up_seconds=0.3, seconds=0.6, turns=6)
QUICK = Effort(settling_seconds=0.2, warm_up_seconds=0.05, seconds=0.1, turns=1)


class Turns(NamedTuple):
  """What was measured of two settings."""

  # Seconds of a step in each turn.
  fixed: list[float]
  tuned: list[float]
  # What the stage had chosen in each session of the second setting.
  chosen: list[cases.Setting]


def compare(opened: cases.OpenStage, fixed: cases.Setting, tuned: cases.Setting, sessions: int, how: Effort) -> Turns:
  """Compares a fixed setting with one that lets the stage choose.

  Args:
    opened: Opens training with a setting.
    fixed: The fixed setting.
    tuned: The other one.
    sessions: How many new sessions of each are compared; equal sessions differ.
    how: How long each is measured.

  Returns:
    What was measured; the turns of both correspond.
  """
  result = Turns([], [], [])
  for number in range(sessions):
    with opened(fixed) as one, opened(tuned) as other:
      blocks.cost(other.step, how.settling_seconds)
      for turn in range(how.turns):
        both = [(one, result.fixed), (other, result.tuned)]
        for stage, values in both[:: (-1) ** (turn + number)]:
          values.append(seconds(stage, how))
      result.chosen.append(other.setting())
  return result


def seconds(stage: cases.Stage, how: Effort) -> float:
  """Returns how many seconds a step takes that goes on for ever.

  A buffer has filled while other stages were measured. Steps that empty it are quicker than the producers, and would
  not stay so; then the time of a record that was put counts instead.
  """
  blocks.cost(stage.step, how.warm_up_seconds)
  before, steps = stage.put(), 0
  began = now = time.perf_counter()
  while now - began < how.seconds or steps % stage.period:
    stage.step()
    steps += 1
    now = time.perf_counter()
  return (now - began) / min(steps, max(1, stage.put() - before))
