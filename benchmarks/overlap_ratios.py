#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how much of a preparation is hidden that is shorter, as long or longer than the step, or jitters.

`.venv/bin/python benchmarks/overlap_ratios.py --picture=benchmarks/overlap_ratios.svg > benchmarks/overlap_ratios.md`
takes about two minutes; `--quick` tries whether it works.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any
from typing import NamedTuple

import tensorflow as tf
from lib import blocks
from lib import parts_command_line
from lib import pictures
from lib import report
from lib import timed_work
from lib import ways

_CAPACITY = 4
_SECONDS = 12
_ROUNDS = 9
_QUICK_SECONDS = 0.5

_BASE = "no stage"
_TUNED = "`tf.staged`, AUTOTUNE"
_WAYS: dict[str, ways.Way] = {
    _BASE: ways.no_stage,
    "`tf.data`, `prefetch`": ways.data_prefetch,
    "`StagingArea`, a Python thread": ways.staging_area,
    "`tf.staged`": ways.staged,
    "SmartStage": ways.smart_stage,
    _TUNED: ways.tuned,
}
_RECORD = "the record alone"
_STEP = "the step alone"
_SETTLING_STEPS = 300


class Case(NamedTuple):
  """The milliseconds of a record, given its number, and of a step."""

  name: str
  record: Callable[[int], float]
  step: Callable[[int], float]
  computes: bool = False


_CASES = {
    "1_3": Case("1 : 3", lambda number: 3, lambda number: 9),
    "1_1": Case("1 : 1", lambda number: 6, lambda number: 6),
    "3_1": Case("3 : 1", lambda number: 9, lambda number: 3),
    "jitter": Case("1 : 1, the preparation jitters", lambda number: timed_work.jitter(number, 12), lambda number: 6),
    "jitters": Case(
        "1 : 1, both jitter",
        lambda number: timed_work.jitter(number, 12), lambda number: timed_work.jitter(-number, 12)),
    "computes": Case("1 : 1, both compute", lambda number: 6, lambda number: 6, computes=True),
}


def _measure(case: Case, quick: bool) -> dict[str, list[blocks.Cost]]:
  """Returns the costs of the ways."""

  def prepared(number: tf.Tensor) -> tf.Tensor:
    return timed_work.slow(number, case.record, case.computes)

  def numbers() -> tf.Tensor:
    return tf.compat.v1.data.make_one_shot_iterator(timed_work.counter()).get_next()

  def train(record: ways.Record) -> tf.Operation:
    trained = timed_work.slow(record[0], case.step, case.computes)
    # A step without variables could run ahead as a whole. What is marked stays in the step: the function, not only
    # what gives its result a shape.
    tf.compat.v1.train.mark_target_node([trained.op.inputs[0]])
    return trained.op

  source = ways.Source(
      lambda: [prepared(numbers())], lambda: timed_work.counter().map(lambda number: (prepared(number),)))
  with contextlib.ExitStack() as stack:
    steps = {name: stack.enter_context(ways.step_of(way, source, train, _CAPACITY)) for name, way in _WAYS.items()}
    steps[_RECORD] = stack.enter_context(ways.step_of(ways.no_stage, source, ways.computed))
    steps[_STEP] = stack.enter_context(
        ways.step_of(ways.no_stage, source._replace(record=lambda: [numbers()]), train))
    for _ in range(0 if quick else _SETTLING_STEPS):
      steps[_TUNED]()
    return blocks.in_turns(steps, _QUICK_SECONDS if quick else _SECONDS, 1 if quick else _ROUNDS)


def _limit(case: Case, costs: dict[str, blocks.Cost]) -> float:
  """Returns the least seconds of a step with one producer."""
  return max(costs[_RECORD].seconds, costs[_STEP].seconds, report.limit(costs[_RECORD], costs[_STEP], os.cpu_count()))


def _write(results: dict[str, Any]) -> parts_command_line.Page:
  table: list[tuple[str, ...]] = [
      ("preparation : step", "way", "ms per step", "CPU ms per step", "times as fast as no stage", report.INTERVAL,
       "time / limit")]
  groups = []
  for key, rounds in results.items():
    case = _CASES[key]
    costs = {name: blocks.median([blocks.Cost(*cost) for cost in values]) for name, values in rounds.items()}
    limit = _limit(case, costs)
    bars, label = [], case.name
    for way in _WAYS:
      cost, ratio = costs[way], blocks.ratio(rounds, way, _BASE)
      table.append((
          label, way, report.milliseconds(cost.seconds), report.milliseconds(cost.cpu_seconds), f"{ratio.median:.3f}",
          report.interval(ratio), f"{cost.seconds / limit:.2f}"))
      bars.append(pictures.Bar(way.replace("`", ""), *ratio))
      label = ""
    table.append(("", "the limit", report.milliseconds(limit), "", f"{costs[_BASE].seconds / limit:.3f}", "", "1"))
    groups.append(pictures.Group(case.name, bars[1:]))
  return parts_command_line.Page(
      f"""# Preparation and step in several proportions

{report.command("overlap_ratios")}

{report.markdown(table, left=2)}

A record and a step take 3 and 9 ms, 6 and 6 ms, or 9 and 3 ms, each in a `tf.numpy_function`: asleep, so that they do
not compete for a core, or in the last case computing hyperbolic tangents in one thread, measured in CPU time. What
*jitters* takes a time between 0 and 12 ms, uniformly distributed. Buffers hold {_CAPACITY} records, which one producer
computes; with AUTOTUNE, `tf.staged` chooses both numbers, for which it had {_SETTLING_STEPS} steps before. The limit is
that of one producer: the record or the step, measured alone, whichever takes longer; or the CPU time of both over the
cores, if that is longer. More producers can beat it.

All ways of a case are open in one process and take turns; the numbers are medians of {_ROUNDS} rounds. *Times as fast*
is the median of the ratios of the rounds, with its confidence interval beside it.""",
      pictures.bars("Times as fast as without a stage", groups, mark=1.0))


if __name__ == "__main__":
  parts_command_line.main(
      __file__, __doc__, {key: lambda quick, case=case: _measure(case, quick) for key, case in _CASES.items()},
      _write, quick=("jitter",))
