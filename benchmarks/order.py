#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares several producers that keep the order of the records with as many that do not, for benchmarks/order.md.

`.venv/bin/python benchmarks/order.py > benchmarks/order.md` takes about 9 minutes; `--quick` tries whether it works.
"""

from __future__ import annotations

import statistics
from typing import Any

from lib import autotune_cases as cases
from lib import blocks
from lib import parts_command_line
from lib import report
from lib import stage_turns

_TARGET = 1.02
_CAPACITY = 4
# The producers of each case.
_PRODUCERS = {
    "waits_6_2": 4,
    "waits_8_0": 8,
    "waits_by_turns": 4,
    "waits_by_long_turns": 4,
    "waits_jitter": 4,
    "computes_6_2": 2,
    "large": 2,
    "hidden_256": 2,
    "hidden_32": 2,
}
# A fixed number of producers has nothing to settle.
_FULL = stage_turns.FULL._replace(settling_seconds=1)


def _measure(name: str, quick: bool) -> tuple[list[float], list[float]]:
  """Returns the seconds of a step in each turn, in any order and in order."""
  case, setting = cases.ALL[name], cases.Setting(_PRODUCERS[name], _CAPACITY)
  sessions, effort = (1, stage_turns.QUICK) if quick else (case.sessions, _FULL)
  with case.prepared(quick) as opened:
    turns = stage_turns.compare(opened, setting._replace(deterministic=False), setting, sessions, effort)
  return turns.fixed, turns.tuned


def _write(results: dict[str, Any]) -> str:
  table = [
      ("record : step, or program", "producers", "ms per step in any order", "in order", "in order / any order",
       report.INTERVAL)]
  for name, (any_order, in_order) in results.items():
    ratio = blocks.interval([one / other for one, other in zip(in_order, any_order, strict=True)])
    table.append((
        cases.ALL[name].title, str(_PRODUCERS[name]), report.milliseconds(statistics.median(any_order)),
        report.milliseconds(statistics.median(in_order)),
        f"{ratio.median:.3f}{' **slower**' if ratio.low > _TARGET else ''}", report.interval(ratio, digits=3)))
  return f"""# What it costs that producers keep an order

{report.command("order")}

{report.markdown(table)}

Several producers keep the order of one, unless `deterministic=False`. The cases are those of [autotuning](autotune.md),
with a capacity of {_CAPACITY}. Order should take at most {_TARGET} times as long; where the whole interval is above
that, it is marked. Two sessions are open together and take turns, {_FULL.turns} of {_FULL.seconds} s each;
there are {cases.SESSIONS} pairs of sessions, and {cases.SESSIONS_OF_NOISY} with large records. The ratio is the median
of the turns, with its confidence interval."""


if __name__ == "__main__":
  parts_command_line.main(
      __file__, __doc__, {name: lambda quick, name=name: _measure(name, quick) for name in _PRODUCERS}, _write,
      quick=("waits_6_2", "hidden_32"))
