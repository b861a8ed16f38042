#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tells which threads compute more or less in a model's steps with SmartStage, for benchmarks/cpu_by_thread.md.

`.venv/bin/python benchmarks/cpu_by_thread.py --picture=benchmarks/cpu_by_thread.svg > benchmarks/cpu_by_thread.md`
takes about nine minutes; `--quick` tries whether it works.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import statistics
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple

import blocks
import model_runs
import parts
import pictures
import report

from modelzoo.base import model as models
from modelzoo.base.dataset import Input
from modelzoo.base.staging import Staging
from modelzoo.base.training import Run

_BASE, _SMART = "no stage", "SmartStage"
_STAGING = {_BASE: Staging(), _SMART: Staging(staging="smart")}
_ROWS = 40_000
_BATCH = 256
_SECONDS = 4.5
_ROUNDS = 10
_TURNS = 4
_LEAST_STEPS = 8
_QUICK_ROWS = 600
_QUICK_BATCH = 32
_QUICK_SECONDS = 0.5
_TASKS = pathlib.Path("/proc/self/task")


class Spent(NamedTuple):
  """CPU seconds of a step, by who spent them."""

  caller: float
  pools: float
  producer: float
  others: float


# Of what Spent has.
_TITLES = ("the thread that calls `run`", "TensorFlow's pools", "the producer", "all others")


class _Threads:
  """Counts what threads spend. Those that exist at its creation, and do not call it, belong to TensorFlow's pools."""

  def __init__(self):
    self._pools = _nanoseconds().keys()

  def measure(self, step: blocks.Step, seconds: float, least_steps: int) -> Spent:
    """Returns the means of a block of steps."""
    steps = 0

    def counted() -> None:
      nonlocal steps
      step()
      steps += 1

    before = _nanoseconds()
    blocks.cost(counted, seconds, least_steps)
    spent = dict.fromkeys(Spent._fields, 0.0)
    for thread, now in _nanoseconds().items():
      spent[self._owner(thread)] += (now - before.get(thread, 0)) / 1e9 / steps
    return Spent(**spent)

  def _owner(self, thread: int) -> str:
    if thread == os.getpid():
      return "caller"
    if thread in self._pools:
      return "pools"
    return "producer" if _name(thread).startswith("stage_") else "others"


def _nanoseconds() -> dict[int, int]:
  """Returns for how long each thread of this process has run, as the kernel's scheduler counts it."""
  result = {}
  for task in _TASKS.iterdir():
    # A thread may end meanwhile.
    with contextlib.suppress(OSError):
      result[int(task.name)] = int((task / "schedstat").read_text().split()[0])
  return result


def _name(thread: int) -> str:
  with contextlib.suppress(OSError):
    return (_TASKS / str(thread) / "comm").read_text()
  return ""


def _measure(name: str, quick: bool) -> dict[str, list[list[Spent]]]:
  """Returns what was spent with and without the stage, in each turn of each round."""
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
    return blocks.in_new_sessions_by_turns(openers, seconds, rounds, turns, _LEAST_STEPS, _Threads().measure)


def _medians(measured: list[list[list[float]]]) -> list[Spent]:
  """Returns what was spent in each round: the medians of its turns."""
  return [Spent(*map(statistics.median, zip(*turns, strict=True))) for turns in measured]


def _rows(label: str, base: list[Spent], smart: list[Spent]) -> Iterator[tuple[str, ...]]:
  """Yields the rows of a model, given the rounds."""
  for title, *columns in zip((*_TITLES, "all"), *map(_columns, (base, smart)), strict=True):
    without, with_stage = columns
    more = blocks.interval([1e3 * (here - there) for here, there in zip(with_stage, without, strict=True)])
    yield (label, title, *(f"{1e3 * statistics.median(values):.3f}" for values in columns), f"{more.median:+.3f}",
           f"{more.low:+.3f} to {more.high:+.3f}")
    label = ""


def _columns(rounds: list[Spent]) -> list[tuple[float, ...]]:
  """Returns the seconds of each group of threads, and those of all, in the rounds."""
  return [*zip(*rounds, strict=True), tuple(map(sum, rounds))]


def _write(results: dict[str, Any]) -> parts.Page:
  table: list[tuple[str, ...]] = [
      ("model", "threads", "no stage, CPU ms a step", "SmartStage, CPU ms a step", "more, ms", report.INTERVAL)]
  bars = []
  for name, measured in results.items():
    label = models.load(name).name
    base, smart = (_medians(measured[way]) for way in (_BASE, _SMART))
    table += _rows(label, base, smart)
    bars.append(pictures.Bar(
        label, *blocks.interval([sum(here) / sum(there) for here, there in zip(smart, base, strict=True)])))
  return parts.Page(
      f"""# Who computes in a step with SmartStage, and without

{report.command("cpu_by_thread")}

{report.markdown(table, left=2)}

The models of modelzoo/ with their default sizes and batches of {_BATCH} rows, over tf.data that parses and prepares in
parallel, and prefetches. TensorFlow's pools compute the operations of a step; the producer is the stage's own thread;
all others are tf.data's. Times are those of the kernel's scheduler.

In each of {_ROUNDS} rounds, a new session with SmartStage and one without are open together, and take {_TURNS} turns of
at least {_LEAST_STEPS} steps, whose median counts. *More* is the median of the rounds' differences, with its confidence
interval beside it.""",
      pictures.bars("CPU time of a step with SmartStage, over that without", [pictures.Group("", bars)], mark=1.0))


if __name__ == "__main__":
  parts.main(
      __file__, __doc__, {name: functools.partial(_measure, name) for name in models.NAMES}, _write, quick=("dssm",))
