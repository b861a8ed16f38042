#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a stage that chooses its settings with each fixed setting of a grid, for benchmarks/autotune.md.

`.venv/bin/python benchmarks/autotune.py > benchmarks/autotune.md` takes about ten minutes; `--quick` tries whether it
works.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import blocks
import quietness
import report
import spending
import tensorflow as tf

_TARGET = 1.03


class Effort(NamedTuple):
  """How long to measure."""

  # Steps after which a stage that chooses must have chosen.
  settling_steps: int
  warm_up_steps: int
  measured_steps: int
  # Rounds in which all settings take turns, to find the best fixed one, and in which that one and the chosen one do.
  rounds: int
  pairs: int
  threads: tuple[int, ...]
  capacities: tuple[int, ...]


_FULL = Effort(
    settling_steps=3000,
    warm_up_steps=40,
    measured_steps=80,
    rounds=6,
    pairs=21,
    threads=(1, 2, 4),
    capacities=(1, 4, 16))
_QUICK = Effort(
    settling_steps=20, warm_up_steps=2, measured_steps=5, rounds=1, pairs=1, threads=(1,), capacities=(1,))


class Case(NamedTuple):
  """What a record and a step take, in milliseconds."""

  name: str
  record: Callable[[int], float]
  step: float
  computes: bool = False


_CASES = (
    Case("waits 2 : 6 ms", lambda number: 2, 6),
    Case("waits 4 : 4 ms", lambda number: 4, 4),
    Case("waits 6 : 2 ms", lambda number: 6, 2),
    Case("waits 0 or 7 : 4 ms, by turns of 6", lambda number: 7 * (number // 6 % 2), 4),
    Case("computes 3 : 3 ms", lambda number: 3, 3, computes=True),
    Case("computes 6 : 2 ms", lambda number: 6, 2, computes=True),
)

# Threads and capacity of a stage.
Setting = tuple[int, int]
_TUNED: Setting = (tf.data.AUTOTUNE, tf.data.AUTOTUNE)


@contextlib.contextmanager
def _stage(case: Case, setting: Setting):
  """Runs a stage; yields what runs a step, and the session."""
  threads, capacity = setting
  with tf.Graph().as_default():
    number = tf.compat.v1.data.make_one_shot_iterator(spending.counter()).get_next()
    record = tf.staged(spending.slow(number, case.record, case.computes), num_threads=threads, capacity=capacity)
    step = spending.slow(record, lambda number: case.step, case.computes).op
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1)
    with tf.compat.v1.Session(config=config) as session, tf.make_prefetch_hook().running(session):
      yield session.make_callable(step), session


def _seconds(step: Callable[[], None], session: tf.compat.v1.Session, effort: Effort) -> float:
  """Returns how many seconds a step takes that goes on for ever.

  A buffer has filled while other stages were measured. Steps that empty it are quicker than the producers, and would
  not stay so; then the time of a record that was put counts instead.
  """
  for _ in range(effort.warm_up_steps):
    step()
  before = _put(session)
  began = time.perf_counter()
  for _ in range(effort.measured_steps):
    step()
  elapsed = time.perf_counter() - began
  return elapsed / min(effort.measured_steps, max(1, _put(session) - before))


def _put(session: tf.compat.v1.Session) -> int:
  """Returns how many records have been put."""
  stage, = tf.staging.stats(session)
  return stage.put


def _row(case: Case, effort: Effort) -> tuple[str, ...]:
  settings = [_TUNED, *itertools.product(effort.threads, effort.capacities)]
  rounds: dict[Setting, list[float]] = {setting: [] for setting in settings}
  with contextlib.ExitStack() as stack:
    stages = {}
    for setting in settings:
      stages[setting] = step, session = stack.enter_context(_stage(case, setting))
      if setting == _TUNED:
        tuned = session
        for _ in range(effort.settling_steps):
          step()
    for turn in range(effort.rounds):
      for setting in settings[:: (-1) ** turn]:
        rounds[setting].append(_seconds(*stages[setting], effort))
    medians = {setting: statistics.median(values) for setting, values in rounds.items() if setting != _TUNED}
    best = min(medians, key=medians.get)
    # Other rounds than those that chose the quickest: there, chance helped it.
    pairs: dict[Setting, list[float]] = {_TUNED: [], best: []}
    for turn in range(effort.pairs):
      for setting in list(pairs)[:: (-1) ** turn]:
        pairs[setting].append(_seconds(*stages[setting], effort))
    stats, = tf.staging.stats(tuned)
  ratio = blocks.interval([chosen / fixed for chosen, fixed in zip(pairs[_TUNED], pairs[best], strict=True)])
  return (
      case.name,
      f"{stats.num_threads}, {stats.capacity}",
      f"{statistics.median(pairs[_TUNED]) * 1e3:.2f}",
      f"{best[0]}, {best[1]}",
      f"{statistics.median(pairs[best]) * 1e3:.2f}",
      f"{ratio.median:.3f}",
      report.interval(ratio, digits=3),
      f"{medians[1, 1] * 1e3:.2f}",
      f"{max(medians.values()) * 1e3:.2f}",
  )


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--quick", action="store_true", help="measure too little to mean anything")
  quick = parser.parse_args().quick
  effort = _QUICK if quick else _FULL
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  watch = quietness.Watch()
  table: list[tuple[str, ...]] = [
      ("record : step", "chosen", "ms per step", "best fixed", "ms per step", "chosen / best", report.INTERVAL,
       "the default (1, 1)", "worst fixed"),
  ]
  table += [_row(case, effort) for case in (_CASES[:1] if quick else _CASES)]
  disturbance = watch.disturbance()
  print(f"""# What autotuning costs beside the best settings

`.venv/bin/python benchmarks/autotune.py > benchmarks/autotune.md`, one run on {report.machine()}.

{report.markdown(table)}

Settings are threads and capacity. *Chosen* is what `num_threads=tf.data.AUTOTUNE, capacity=tf.data.AUTOTUNE` had
chosen in the end; *best fixed* is the quickest of all combinations of num_threads
{", ".join(map(str, effort.threads))} and capacity {", ".join(map(str, effort.capacities))}. AUTOTUNE should take at
most {_TARGET} times as long.

A record and a step each take the given time in a `tf.numpy_function`: asleep where the case *waits*, computing in
one thread, measured in CPU time, where it *computes*. All stages of a case are open in one process and take turns,
after {effort.settling_steps} steps in which the stage chose. {effort.rounds} rounds of {effort.measured_steps} steps of
each stage, after {effort.warm_up_steps} steps before each, tell which fixed settings are best, and what the default and
the worst take. Then the best and the chosen ones alone take {effort.pairs} turns, because chance helped the best in the
rounds that chose it. *Chosen / best* is the median of the ratios of these turns, with its confidence interval. Steps
that use up what a buffer held before count as long as the records that were put meanwhile, because they could not go on
so. Meanwhile, {disturbance}.""")


if __name__ == "__main__":
  main()
