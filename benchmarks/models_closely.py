#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the models of modelzoo/ with SmartStage and without, closely, for benchmarks/models_closely.md.

`.venv/bin/python benchmarks/models_closely.py --picture=benchmarks/models_closely.svg > benchmarks/models_closely.md`
takes about 25 minutes; `--quick` tries whether it works.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from lib import blocks
from lib import model_runs
from lib import parts_command_line
from lib import pictures
from lib import report
from lib import thread_times
from lib.thread_times import Spent

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
_THREADS: dict[str, Callable[[Spent], float]] = {
    "the thread that calls `run`": lambda spent: spent.caller,
    "TensorFlow's pools": lambda spent: spent.pools,
    "the producer": lambda spent: spent.producer,
    "all others": lambda spent: spent.others,
    "all": lambda spent: spent.cpu,
}


def _measure(name: str, quick: bool) -> dict[str, list[list[Spent]]]:
  """Returns what steps took with and without the stage, in each turn of each round."""
  rows, batch = (_QUICK_ROWS, _QUICK_BATCH) if quick else (_ROWS, _BATCH)
  seconds, rounds, turns = (_QUICK_SECONDS, 1, 1) if quick else (_SECONDS, _ROUNDS, _TURNS)
  model = models.load(name)
  with model_runs.files_of(model, rows) as data:
    files = Input(data=data, batch_size=batch, tf_data="best")
    openers = {
        way: functools.partial(model_runs.stepping, Run(model, model.hyperparameters(), files, staging=staging))
        for way, staging in _STAGING.items()
    }
    # All sessions of a process share the pools, which the first one starts.
    with openers[_BASE]() as step:
      step()
    return blocks.in_new_sessions_by_turns(
        openers, seconds, rounds, turns, _LEAST_STEPS, thread_times.Threads().measure)


# What a step took without the stage and with it, in each round.
Pairs = Sequence[tuple[Spent, Spent]]


def _pairs(measured: dict[str, list[list[list[float]]]]) -> Pairs:
  """Returns the medians of the turns of each round."""
  base, smart = ([Spent(*map(statistics.median, zip(*turns, strict=True)))
                  for turns in measured[way]]
                 for way in (_BASE, _SMART))
  return list(zip(base, smart, strict=True))


def _speed(pairs: Pairs) -> blocks.Ratio:
  """Returns how many times as fast steps are with the stage."""
  return blocks.interval([base.elapsed / smart.elapsed for base, smart in pairs])


def _cpu(pairs: Pairs) -> blocks.Ratio:
  """Returns how many times as much CPU time steps take with the stage."""
  return blocks.interval([smart.cpu / base.cpu for base, smart in pairs])


def _speed_row(label: str, pairs: Pairs) -> tuple[str, ...]:
  """Returns the row of a model in the table of speed."""
  speed, cpu = _speed(pairs), _cpu(pairs)
  base, smart = (Spent(*map(statistics.median, zip(*rounds, strict=True))) for rounds in zip(*pairs, strict=True))
  return (
      label, report.milliseconds(base.elapsed), report.milliseconds(smart.elapsed),
      f"{speed.median:.3f}{' **slower**' if speed.high < _LEAST else ''}", report.interval(speed, digits=3),
      f"{cpu.median:.3f}", report.interval(cpu, digits=3))


def _thread_rows(label: str, pairs: Pairs) -> Iterator[tuple[str, ...]]:
  """Yields the rows of a model in the table of threads."""
  for title, of in _THREADS.items():
    base, smart = ([1e3 * of(spent) for spent in rounds] for rounds in zip(*pairs, strict=True))
    more = blocks.interval([here - there for there, here in zip(base, smart, strict=True)])
    yield (label, title, f"{statistics.median(base):.3f}", f"{statistics.median(smart):.3f}", f"{more.median:+.3f}",
           f"{more.low:+.3f} to {more.high:+.3f}")
    label = ""


def _write(results: dict[str, Any]) -> parts_command_line.Page:
  speeds: list[tuple[str, ...]] = [
      ("model", "no stage, ms a step", "SmartStage, ms a step", "times as fast", report.INTERVAL, "times the CPU time",
       report.INTERVAL)]
  threads: list[tuple[str, ...]] = [
      ("model", "threads", "no stage, CPU ms a step", "SmartStage, CPU ms a step", "more, ms", report.INTERVAL)]
  bars = []
  for name, measured in results.items():
    label, pairs = models.load(name).name, _pairs(measured)
    speeds.append(_speed_row(label, pairs))
    threads += _thread_rows(label, pairs)
    bars.append(pictures.Bar(label, *_speed(pairs)))
  return parts_command_line.Page(
      f"""# Models with SmartStage, and without, compared closely

{report.command("models_closely")}

{report.markdown(speeds)}

## By thread

{report.markdown(threads, left=2)}

## What was measured

The models of modelzoo/ with their default sizes and batches of {_BATCH} rows, over tf.data that parses and prepares in
parallel, and prefetches, from local files; two of the ways of [models.md](models.md).

In each of {_ROUNDS} rounds, a new session with SmartStage and one without are open together for {_SECONDS:.0f} s, and
take {_TURNS} turns, because the speed of a machine drifts, and [equal sessions](equal_sessions.md) differ. A third of a
turn warms up, because buffers have filled while the other was measured, and {_LEAST_STEPS} steps or more are measured.
The median of a round's turns counts. *Times as fast*, *times the CPU time* and *more* are medians of the rounds' ratios
and differences, with their confidence intervals beside them. SmartStage would be marked as slower if the whole interval
were below {_LEAST}.

TensorFlow's pools compute the operations of a step; the producer is the stage's own thread; all others are tf.data's.
CPU times are those of the kernel's scheduler.""",
      pictures.bars("Times as fast with SmartStage, with tf.data's best", [pictures.Group("", bars)], mark=1.0))


if __name__ == "__main__":
  parts_command_line.main(
      __file__, __doc__, {name: functools.partial(_measure, name) for name in models.NAMES}, _write, quick=("dssm",))
