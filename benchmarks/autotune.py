#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a stage that chooses its settings with each fixed setting of a grid, for benchmarks/autotune.md.

`.venv/bin/python benchmarks/autotune.py > benchmarks/autotune.md` takes about 85 minutes; `--quick` tries whether it
works.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
from typing import Any
from typing import NamedTuple

from lib import autotune_cases as cases
from lib import blocks
from lib import local_cluster
from lib import parts_command_line
from lib import report
from lib import stage_turns
from lib import timed_work

_TARGET = 1.03
# One producer, which keeps the order of the records, and one record.
_ONE_RECORD = cases.Setting(1, 1)
# Rounds in which all fixed settings take turns, to find the best.
_GRID_ROUNDS = 4
# Where buffers of tf.data have filled, too, it takes seconds until they are empty.
_WITH_BUFFERS_BELOW = stage_turns.FULL._replace(warm_up_seconds=4, seconds=3)


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
  full = _WITH_BUFFERS_BELOW if case.buffers_below else stage_turns.FULL
  effort = stage_turns.QUICK if quick else full
  with case.prepared(quick) as opened:
    grid = _grid(opened, _settings(case.grid, quick), 1 if quick else _GRID_ROUNDS, effort)
    best = min(grid, key=grid.get)
    turns = stage_turns.compare(opened, best, cases.TUNED, 1 if quick else case.sessions, effort)
    return Result(list(grid.items()), best, *turns)


def _settings(grid: cases.Grid, quick: bool) -> list[cases.Setting]:
  return [_ONE_RECORD] if quick else list(itertools.starmap(cases.Setting, itertools.product(*grid)))


def _grid(
    opened: cases.OpenStage,
    settings: list[cases.Setting],
    count: int,
    effort: stage_turns.Effort,
) -> dict[cases.Setting, float]:
  """Returns the median seconds of a step with each setting; all take turns, in so many rounds."""
  rounds: dict[cases.Setting, list[float]] = {setting: [] for setting in settings}
  with contextlib.ExitStack() as stack:
    stages = {setting: stack.enter_context(opened(setting)) for setting in settings}
    for turn in range(count):
      for setting in settings[:: (-1) ** turn]:
        rounds[setting].append(stage_turns.seconds(stages[setting], effort))
  return {setting: statistics.median(values) for setting, values in rounds.items()}


def _write(results: dict[str, Any]) -> str:
  table = [
      ("record : step, or program", "tried", "chosen", "ms per step", "best fixed", "ms per step", "chosen / best",
       report.INTERVAL, "1, 1, ms", "worst fixed, ms")]
  for name in (name for name in cases.ALL if name in results):
    result = Result(*results[name])
    grid = {cases.Setting(*setting): seconds for setting, seconds in result.grid}
    ratio = blocks.interval([tuned / fixed for tuned, fixed in zip(result.tuned, result.fixed, strict=True)])
    chosen = dict.fromkeys(str(cases.Setting(*setting)) for setting in result.chosen)
    title = cases.ALL[name].title
    table.append((
        title, str(cases.ALL[name].grid), "; ".join(chosen), report.milliseconds(statistics.median(result.tuned)),
        str(cases.Setting(*result.best)), report.milliseconds(statistics.median(result.fixed)),
        f"{ratio.median:.3f}{' **slower**' if ratio.low > _TARGET else ''}", report.interval(ratio, digits=3),
        report.milliseconds(grid[_ONE_RECORD]), report.milliseconds(max(grid.values()))))
  return f"""# What autotuning costs beside the best settings

{report.command("autotune")}

{report.markdown(table)}

Settings are threads and capacity. *Tried* is the grid, all combinations of num_threads and capacity. *Chosen* is what
`num_threads=tf.data.AUTOTUNE, capacity=tf.data.AUTOTUNE` had chosen in the end, in each of {cases.SESSIONS} sessions;
*best fixed* is the quickest of the grid. AUTOTUNE should take at most {_TARGET} times as long; where the whole interval
is above that, it is marked.

In the cases with times, a record and a step each take the given time in a `tf.numpy_function`: asleep where the case
*waits*, computing in one thread, measured in CPU time, where it *computes*. Some are those of
[producers and capacity](scale.md), as are records that are filled with a number and not read. The model with one hidden
layer is that of the [pipelines](pipelines.md), and the [parameter server](parameter_servers.md) has two workers; a step
is {local_cluster.STEPS_AT_ONCE} of each, and the settings are the first one's. The others are the [models](models.md)
with their default sizes and batches of {cases.BATCH} rows, whose lines of text SmartStage parses and prepares, because
tf.data only reads them. In the last two, tf.data parses and prepares them as well, and reads them behind the latency of
remote storage.

All fixed settings of a case are open in one process and take turns, {_GRID_ROUNDS} rounds of
{stage_turns.FULL.seconds} s, or until the times of a case repeat ({timed_work.JITTER_PERIOD:,} steps where they are
random). They tell which is best, and what one producer with one record and the worst take. Then {cases.SESSIONS} new
sessions of the best and of AUTOTUNE, which has {stage_turns.FULL.settling_seconds} s to choose, take
{stage_turns.FULL.turns} turns each: chance helped the best in the rounds that chose it, and
[equal sessions](results.md) differ. Where turns of equal settings differ most, with a parameter server and with
large records, there are {cases.SESSIONS_OF_NOISY}. Behind remote storage, tf.data's own buffers fill as well while
others are measured, so {_WITH_BUFFERS_BELOW.warm_up_seconds} s pass before each turn of
{_WITH_BUFFERS_BELOW.seconds} s. *Chosen / best* is the median of the ratios of these turns, with its
confidence interval. Steps that use up what a buffer held before count as long as the records that were put meanwhile,
because they could not go on so."""


if __name__ == "__main__":
  parts_command_line.main(
      __file__, __doc__,
      {name: lambda quick, case=case: _measure(case, quick) for name, case in cases.ALL.items()},
      _write, quick=("waits_2_6", "large", "hidden_32", "cluster_250", "dssm"))
