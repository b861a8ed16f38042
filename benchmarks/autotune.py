#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a stage that chooses its settings with each fixed setting of a grid, for benchmarks/autotune.md.

`.venv/bin/python benchmarks/autotune.py --picture=benchmarks/autotune.svg > benchmarks/autotune.md` takes about
80 minutes; `--quick` tries whether it works.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import time
from typing import Any
from typing import NamedTuple

import autotune_cases as cases
import blocks
import local_cluster
import parts
import pictures
import report
import spending

_TARGET = 1.03
_DEFAULT = cases.Setting(1, 1)


class Effort(NamedTuple):
  """How long to measure."""

  # After this long, a stage that chooses must have chosen.
  settling_seconds: float
  warm_up_seconds: float
  seconds: float
  # Rounds in which all fixed settings take turns, to find the best.
  grid_rounds: int
  # In how many turns each session of the best and of AUTOTUNE is compared.
  turns: int


_FULL = Effort(settling_seconds=20, warm_up_seconds=0.3, seconds=0.6, grid_rounds=4, turns=6)
# Where buffers of tf.data have filled, too, it takes seconds until they are empty.
_FULL_WITH_BUFFERS_BELOW = _FULL._replace(warm_up_seconds=4, seconds=3)
_QUICK = Effort(settling_seconds=0.2, warm_up_seconds=0.05, seconds=0.1, grid_rounds=1, turns=1)


class Result(NamedTuple):
  """What was measured of a case."""

  # Seconds of a step with each fixed setting, in the rounds of the grid.
  grid: list[tuple[cases.Setting, float]]
  best: cases.Setting
  # Seconds of a step in each turn of the comparison.
  fixed: list[float]
  tuned: list[float]
  # What AUTOTUNE had chosen in each session.
  chosen: list[cases.Setting]


def _measure(case: cases.Case, quick: bool) -> Result:
  full = _FULL_WITH_BUFFERS_BELOW if case.buffers_below else _FULL
  effort = _QUICK if quick else full
  with case.prepared(quick) as opened:
    grid = _grid(opened, _settings(case.grid, quick), effort)
    best = min(grid, key=grid.get)
    result = Result(list(grid.items()), best, [], [], [])
    for number in range(1 if quick else case.sessions):
      _compare(opened, result, number % 2, effort)
    return result


def _settings(grid: cases.Grid, quick: bool) -> list[cases.Setting]:
  return [_DEFAULT] if quick else list(itertools.starmap(cases.Setting, itertools.product(*grid)))


def _grid(opened: cases.OpenStage, settings: list[cases.Setting], effort: Effort) -> dict[cases.Setting, float]:
  """Returns the median seconds of a step with each setting; all take turns."""
  rounds: dict[cases.Setting, list[float]] = {setting: [] for setting in settings}
  with contextlib.ExitStack() as stack:
    stages = {setting: stack.enter_context(opened(setting)) for setting in settings}
    for turn in range(effort.grid_rounds):
      for setting in settings[:: (-1) ** turn]:
        rounds[setting].append(_seconds(stages[setting], effort))
  return {setting: statistics.median(values) for setting, values in rounds.items()}


def _compare(opened: cases.OpenStage, result: Result, first: int, effort: Effort) -> None:
  """Adds the turns of a new session with the best fixed setting, and of one that chooses, to the result."""
  with opened(result.best) as fixed, opened(cases.TUNED) as tuned:
    blocks.cost(tuned.step, effort.settling_seconds)
    for turn in range(effort.turns):
      both = [(fixed, result.fixed), (tuned, result.tuned)]
      for stage, values in both[:: (-1) ** (turn + first)]:
        values.append(_seconds(stage, effort))
    result.chosen.append(tuned.setting())


def _seconds(stage: cases.Stage, effort: Effort) -> float:
  """Returns how many seconds a step takes that goes on for ever.

  A buffer has filled while other stages were measured. Steps that empty it are quicker than the producers, and would
  not stay so; then the time of a record that was put counts instead.
  """
  blocks.cost(stage.step, effort.warm_up_seconds)
  before, steps = stage.put(), 0
  began = now = time.perf_counter()
  while now - began < effort.seconds or steps % stage.period:
    stage.step()
    steps += 1
    now = time.perf_counter()
  return (now - began) / min(steps, max(1, stage.put() - before))


def _write(results: dict[str, Any]) -> parts.Page:
  table = [
      ("record : step, or program", "tried", "chosen", "ms per step", "best fixed", "ms per step", "chosen / best",
       report.INTERVAL, "the default (1, 1), ms", "worst fixed, ms")]
  bars = []
  for name, values in results.items():
    result = Result(*values)
    grid = {cases.Setting(*setting): seconds for setting, seconds in result.grid}
    ratio = blocks.interval([tuned / fixed for tuned, fixed in zip(result.tuned, result.fixed, strict=True)])
    chosen = dict.fromkeys(str(cases.Setting(*setting)) for setting in result.chosen)
    title = cases.ALL[name].title
    table.append((
        title, str(cases.ALL[name].grid), "; ".join(chosen), report.milliseconds(statistics.median(result.tuned)),
        str(cases.Setting(*result.best)), report.milliseconds(statistics.median(result.fixed)),
        f"{ratio.median:.3f}{' **slower**' if ratio.low > _TARGET else ''}", report.interval(ratio, digits=3),
        report.milliseconds(grid[_DEFAULT]), report.milliseconds(max(grid.values()))))
    bars.append(pictures.Bar(title, *ratio))
  return parts.Page(
      f"""# What autotuning costs beside the best settings

{report.command("autotune")}

{report.markdown(table)}

Settings are threads and capacity. *Tried* is the grid, all combinations of num_threads and capacity. *Chosen* is what
`num_threads=tf.data.AUTOTUNE, capacity=tf.data.AUTOTUNE` had chosen in the end, in each of {cases.SESSIONS} sessions;
*best fixed* is the quickest of the grid. AUTOTUNE should take at most {_TARGET} times as long; where the whole interval
is above that, it is marked.

In the cases with times, a record and a step each take the given time in a `tf.numpy_function`: asleep where the case
*waits*, computing in one thread, measured in CPU time, where it *computes*. They are those of
[preparation and step](overlap_ratios.md), and of [producers and capacity](scale.md); so are records that are filled
with a number and not read. The model with one hidden layer is that of the [pipelines](pipelines.md), and the
[parameter server](parameter_servers.md) has two workers; a step is {local_cluster.STEPS_AT_ONCE} of each, and the
settings are the first one's. The others are the [models](models.md) with their default sizes and batches of
{cases.BATCH} rows, whose lines of text SmartStage parses and prepares, because tf.data only reads them.
In the last two, tf.data parses and prepares them as well, and reads them behind the latency of remote storage.

All fixed settings of a case are open in one process and take turns, {_FULL.grid_rounds} rounds of {_FULL.seconds} s,
or until the times of a case repeat ({spending.JITTER_PERIOD:,} steps where they are random). They tell which is best,
and what the default and the worst take. Then {cases.SESSIONS} new sessions of the best and of AUTOTUNE, which has
{_FULL.settling_seconds} s to choose, take {_FULL.turns} turns each: chance helped the best in the rounds that chose it,
and [equal sessions](equal_sessions.md) differ. Where turns of equal settings differ most, with a parameter server and
with large records, there are {cases.SESSIONS_OF_NOISY}. Behind remote storage, tf.data's own buffers fill as well while
others are measured, so {_FULL_WITH_BUFFERS_BELOW.warm_up_seconds} s pass before each turn of
{_FULL_WITH_BUFFERS_BELOW.seconds} s. *Chosen / best* is the median of the ratios of these turns, with its confidence
interval. Steps that use up what a buffer held before count as long as the records
that were put meanwhile, because they could not go on so.""",
      pictures.bars("Time of a step with AUTOTUNE, over that with the best fixed setting",
                    [pictures.Group("", bars)], mark=1.0))


if __name__ == "__main__":
  parts.main(
      __file__, __doc__, {name: lambda quick, case=case: _measure(case, quick) for name, case in cases.ALL.items()},
      _write, quick=("waits_2_6", "large", "hidden_32", "cluster_250", "dssm"))
