#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the models of modelzoo/ with SmartStage and without, closely, for benchmarks/models_closely.md.

`.venv/bin/python benchmarks/models_closely.py > benchmarks/models_closely.md` takes about 25 minutes; `--quick` tries
whether it works.
"""

from __future__ import annotations

import functools
from typing import Any

from lib import blocks
from lib import model_runs
from lib import parts_command_line
from lib import report

from modelzoo.base import model as models
from modelzoo.base.dataset import Input
from modelzoo.base.staging import Staging
from modelzoo.base.training import Run

_BASE, _SMART = "no stage", "SmartStage"
_STAGING = {_BASE: Staging(), _SMART: Staging(staging="smart")}
_ROWS = 40_000
_BATCH = 256
# With two turns of half this length, intervals were two to five times as wide.
_SECONDS = 8.0
_ROUNDS = 24
_TURNS = 4
_LEAST_STEPS = 8
_QUICK_ROWS = 600
_QUICK_BATCH = 32
_QUICK_SECONDS = 0.5
# A stage should never make a model less than this times as fast.
_LEAST = 0.99


def _measure(name: str, quick: bool) -> blocks.Rounds:
  """Returns what steps took with and without the stage, in each round."""
  rows, batch = (_QUICK_ROWS, _QUICK_BATCH) if quick else (_ROWS, _BATCH)
  seconds, rounds, turns = (_QUICK_SECONDS, 1, 1) if quick else (_SECONDS, _ROUNDS, _TURNS)
  model = models.load(name)
  with model_runs.files_of(model, rows) as data:
    files = Input(data=data, batch_size=batch, tf_data="best")
    openers = {
        way: functools.partial(model_runs.stepping, Run(model, model.hyperparameters(), files, staging=staging))
        for way, staging in _STAGING.items()
    }
    return blocks.in_new_sessions_by_turns(openers, seconds, rounds, turns, _LEAST_STEPS)


def _row(label: str, rounds: blocks.Rounds) -> tuple[str, ...]:
  """Returns the row of a model."""
  base, smart = ([blocks.Cost(*cost) for cost in rounds[way]] for way in (_BASE, _SMART))
  speed = blocks.ratio(rounds, _SMART, _BASE)
  cpu = blocks.interval([here.cpu_seconds / there.cpu_seconds for there, here in zip(base, smart, strict=True)])
  return (
      label, report.milliseconds(blocks.median(base).seconds), report.milliseconds(blocks.median(smart).seconds),
      f"{speed.median:.3f}{' **slower**' if speed.high < _LEAST else ''}", report.interval(speed, digits=3),
      f"{cpu.median:.3f}", report.interval(cpu, digits=3))


def _write(results: dict[str, Any]) -> str:
  table: list[tuple[str, ...]] = [
      ("model", "no stage, ms a step", "SmartStage, ms a step", "times as fast", report.INTERVAL, "times the CPU time",
       report.INTERVAL)]
  table += (_row(models.load(name).name, rounds) for name, rounds in results.items())
  return f"""# Models with SmartStage, and without, compared closely

{report.command("models_closely")}

{report.markdown(table)}

The models of modelzoo/ with their default sizes and batches of {_BATCH} rows, over tf.data that parses and prepares in
parallel, and prefetches, from local files; two of the ways of [models.md](models.md).

In each of {_ROUNDS} rounds, a new session with SmartStage and one without are open together for {_SECONDS:.0f} s, and
take {_TURNS} turns, because the speed of a machine drifts, and [equal sessions](results.md) differ. A third of a turn
warms up, because buffers have filled while the other was measured, and {_LEAST_STEPS} steps or more are measured. The
median of a round's turns counts. *Times as fast* and *times the CPU time* are medians of the rounds' ratios, with their
confidence intervals beside them; CPU time is that of all threads. SmartStage would be marked as slower if the whole
interval were below {_LEAST}."""


if __name__ == "__main__":
  parts_command_line.main(
      __file__, __doc__, {name: functools.partial(_measure, name) for name in models.NAMES}, _write, quick=("dssm",))
