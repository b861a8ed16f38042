#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a new stage that chooses its producers with fixed numbers of them, for benchmarks/autotune_soon.md.

`.venv/bin/python benchmarks/autotune_soon.py --picture=benchmarks/autotune_soon.svg > benchmarks/autotune_soon.md`
takes about eight minutes; `--quick` tries whether it works.
"""

from __future__ import annotations

import itertools
import statistics
from typing import Any

from lib import autotune_cases as cases
from lib import blocks
from lib import parts_command_line
from lib import pictures
from lib import report
from lib import stage_turns

_TARGET = 1.05
# So long after the end of the first step, a stage that chooses is measured for so long, in so many new sessions.
_AFTER_SECONDS = 1.0
_EFFORT = stage_turns.FULL._replace(seconds=0.8)
_SESSIONS = 6


def _measure(case: cases.Case, quick: bool) -> list[tuple[cases.Setting, list[float]]]:
  """Returns the seconds of a step with each setting, and with AUTOTUNE, in new sessions that take turns."""
  settings = [*itertools.starmap(cases.Setting, itertools.product(*case.grid)), cases.TUNED]
  settings = settings[-2:] if quick else settings
  effort = stage_turns.QUICK if quick else _EFFORT
  seconds: dict[cases.Setting, list[float]] = {setting: [] for setting in settings}
  with case.prepared(quick) as opened:
    for turn in range(1 if quick else _SESSIONS):
      for setting in settings[:: (-1) ** turn]:
        seconds[setting].append(stage_turns.seconds_soon(opened, setting, _AFTER_SECONDS, effort))
  return list(seconds.items())


def _write(results: dict[str, Any]) -> parts_command_line.Page:
  table = [("record : step", "producers tried", "best", "steps/s with it", "steps/s with AUTOTUNE",
            "AUTOTUNE / best, time", report.INTERVAL, "steps/s with one")]
  bars = []
  for name, case in cases.SOON.items():
    if name not in results:
      continue
    seconds = {cases.Setting(*setting): values for setting, values in results[name]}
    tuned = seconds.pop(cases.TUNED)
    best = min(seconds, key=lambda setting: statistics.median(seconds[setting]))
    ratio = blocks.interval([here / there for here, there in zip(tuned, seconds[best], strict=True)])
    slower = " **slower**" if ratio.low > _TARGET else ""
    speeds = [f"{1 / statistics.median(values):.0f}" for values in (seconds[best], tuned, next(iter(seconds.values())))]
    table.append((
        case.title, ", ".join(str(setting.threads) for setting in seconds), str(best.threads), speeds[0], speeds[1],
        f"{ratio.median:.3f}{slower}", report.interval(ratio, digits=3), speeds[2]))
    bars.append(pictures.Bar(case.title, *ratio))
  return parts_command_line.Page(
      f"""# AUTOTUNE a second after the first step

{report.command("autotune_soon")}

{report.markdown(table)}

A record and a step each take the given time in a `tf.numpy_function`: asleep where the case *waits*, computing in one
thread, measured in CPU time, where it *computes*. Each setting is opened in {_SESSIONS} new sessions, by turns, with a
capacity that the stage chooses, and measured for {_EFFORT.seconds} s, {_AFTER_SECONDS} s after the end of its first
step. The ratio is the median of those of corresponding sessions. AUTOTUNE should take at most {_TARGET} times as long
as the best number of producers; where the whole interval is above that, it is marked.""",
      pictures.bars("Time of a step with AUTOTUNE, over that with the best number of producers, after one second",
                    [pictures.Group("", bars)], mark=1.0))


if __name__ == "__main__":
  parts_command_line.main(
      __file__, __doc__,
      {name: lambda quick, case=case: _measure(case, quick) for name, case in cases.SOON.items()},
      _write, quick=("waits_30_2",))
