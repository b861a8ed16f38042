#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares SmartStage's default capacity, which the buffer chooses, with one record.

`.venv/bin/python benchmarks/default_capacity.py --picture=benchmarks/default_capacity.svg >
benchmarks/default_capacity.md` takes about 25 minutes; `--quick` tries whether it works.
"""

from __future__ import annotations

import statistics
from typing import Any

import tensorflow as tf
from lib import autotune_cases as cases
from lib import blocks
from lib import parts_command_line
from lib import pictures
from lib import report
from lib import stage_turns

_ONE_RECORD = cases.Setting(1, 1)
_DEFAULT = cases.Setting(1, tf.data.AUTOTUNE)
# All that train in one process, from local files.
_CASES = {name: case for name, case in cases.ALL.items() if not name.startswith("cluster") and not case.buffers_below}
# A buffer chooses sooner than the producers do.
_EFFORT = stage_turns.FULL._replace(settling_seconds=8)


def _measure(case: cases.Case, quick: bool) -> stage_turns.Turns:
  sessions, effort = (1, stage_turns.QUICK) if quick else (case.sessions, _EFFORT)
  with case.prepared(quick) as opened:
    return stage_turns.compare(opened, _ONE_RECORD, _DEFAULT, sessions, effort)


def _write(results: dict[str, Any]) -> parts_command_line.Page:
  table = [
      ("record : step, or program", "capacity 1, ms per step", "the default, ms per step", "default / 1",
       report.INTERVAL, "chosen capacity")]
  bars = []
  for name, values in results.items():
    turns = stage_turns.Turns(*values)
    ratio = blocks.interval([tuned / fixed for fixed, tuned in zip(turns.fixed, turns.tuned, strict=True)])
    chosen = dict.fromkeys(str(cases.Setting(*setting).capacity) for setting in turns.chosen)
    title = cases.ALL[name].title
    table.append((
        title, report.milliseconds(statistics.median(turns.fixed)), report.milliseconds(statistics.median(turns.tuned)),
        f"{ratio.median:.3f}", report.interval(ratio, digits=3), "; ".join(chosen)))
    bars.append(pictures.Bar(title, *ratio))
  return parts_command_line.Page(
      f"""# The default capacity of SmartStage, beside one record

{report.command("default_capacity")}

{report.markdown(table)}

By default, SmartStage has one producer, which keeps the order of the records, and the buffer chooses its capacity
(`tf.data.AUTOTUNE`). DeepRec's default is a capacity of 1. The cases are those of [autotune.md](autotune.md) that train
in one process, from local files; that page says what they do. Those of models use SmartStage, the others `tf.staged`,
whose buffer is the same. {cases.SESSIONS} new sessions of each, or
{cases.SESSIONS_OF_NOISY} with large records, where equal settings differ most, take {_EFFORT.turns} turns each; the
buffer has {_EFFORT.settling_seconds} s to choose. *Default / 1* is the median of the ratios of turns, with its
confidence interval. *Chosen* is the capacity of each session in the end.""",
      pictures.bars("Time of a step with the default capacity, over that with one record",
                    [pictures.Group("", bars)], mark=1.0))


if __name__ == "__main__":
  parts_command_line.main(
      __file__, __doc__, {name: lambda quick, case=case: _measure(case, quick) for name, case in _CASES.items()},
      _write, quick=("waits_2_6", "hidden_32"))
