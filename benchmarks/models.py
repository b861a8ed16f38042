#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what stages gain for the models of modelzoo/ beside the best of tf.data, for benchmarks/models.md.

`.venv/bin/python benchmarks/models.py --picture=benchmarks/models.svg > benchmarks/models.md` takes about 30 minutes;
`--quick` tries whether it works.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import tempfile
from typing import Any
from typing import NamedTuple

import blocks
import model_runs
import parts
import pictures
import remote_files
import report

from modelzoo.base import model as models
from modelzoo.base.dataset import Input
from modelzoo.base.staging import Staging
from modelzoo.base.training import Run


class Way(NamedTuple):
  """What tf.data does, and what a stage does."""

  tf_data: str
  staging: Staging


_SMART = Staging(staging="smart")
_BASE = "no stage"
_WAYS = {
    _BASE: Way("best", Staging()),
    "`tf.staged`": Way("best", Staging(staging="staged")),
    "SmartStage": Way("best", _SMART),
    "SmartStage, AUTOTUNE": Way("best", dataclasses.replace(_SMART, capacity=0, threads=0)),
    "plain `tf.data`, no stage": Way("plain", Staging()),
    "plain `tf.data`, SmartStage": Way("plain", _SMART),
}
_RECORD = "the record alone"
_STEP = "the step alone"
_FILES = ("local", "remote")
_ROWS = 40_000
_BATCH = 256
_SECONDS = {"local": 36, "remote": 24}
_ROUNDS = 9
# The two ways that a program chooses between, with what it takes to tell a difference of a few percent from chance.
_PAIR = (_BASE, "SmartStage")
_PAIR_SECONDS = {"local": 90, "remote": 45}
_PAIR_ROUNDS = 60
# DIEN's steps are so long that few of them fit into a block.
_PAIR_LEAST_STEPS = 12
_QUICK_ROWS = 600
_QUICK_BATCH = 32
_QUICK_SECONDS = 0.5
# A stage should never be less than this times as fast as the base.
_LEAST = 0.99


class Result(NamedTuple):
  """What was measured of a model."""

  all: blocks.Rounds
  pair: blocks.Rounds


def _measure(name: str, files: str, quick: bool) -> Result:
  """Measures all ways of a model, then the pair."""
  model = models.load(name)
  if files == "remote":
    model = remote_files.reading(model)
  with contextlib.ExitStack() as stack:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    rows, batch = (_QUICK_ROWS, _QUICK_BATCH) if quick else (_ROWS, _BATCH)
    data = model_runs.write_files(folder, rows, (model_runs.data_set_of(model),))[model_runs.data_set_of(model)]

    def run(way: Way) -> Run:
      return Run(
          model, model.hyperparameters(), Input(data=str(data), batch_size=batch, tf_data=way.tf_data),
          staging=way.staging)

    steps = {
        title: stack.enter_context(model_runs.stepping(run(way)))
        for title, way in _WAYS.items() if not quick or title in _PAIR
    }
    base = run(_WAYS[_BASE])
    steps[_RECORD] = stack.enter_context(model_runs.preparing(base))
    steps[_STEP] = stack.enter_context(model_runs.stepping(base, model_runs.one_record(base)))
    pair = {way: steps[way] for way in _PAIR}
    if quick:
      return Result(blocks.in_turns(steps, _QUICK_SECONDS, 1), blocks.in_turns(pair, _QUICK_SECONDS, 1))
    return Result(
        blocks.in_turns(steps, _SECONDS[files], _ROUNDS),
        blocks.in_turns(pair, _PAIR_SECONDS[files], _PAIR_ROUNDS, _PAIR_LEAST_STEPS))


def _rows(label: str, rounds: blocks.Rounds) -> tuple[list[tuple[str, ...]], list[pictures.Bar]]:
  """Returns the rows of a model in the table, and its bars."""
  costs = {name: blocks.median([blocks.Cost(*cost) for cost in values]) for name, values in rounds.items()}
  limit = report.limit(costs[_RECORD], costs[_STEP], os.cpu_count())
  rows, bars = [], []
  for way in (way for way in _WAYS if way in rounds):
    cost, ratio = costs[way], blocks.ratio(rounds, way, _BASE)
    slower = _slower(ratio) if _WAYS[way].staging.staging != "none" else ""
    rows.append((
        label, way, f"{1 / cost.seconds:.1f}", report.milliseconds(cost.seconds),
        report.milliseconds(cost.cpu_seconds), f"{ratio.median:.3f}{slower}", report.interval(ratio),
        f"{cost.seconds / limit:.2f}"))
    if way != _BASE:
      bars.append(pictures.Bar(way.replace("`", ""), *ratio))
    label = ""
  rows.append(("", "the limit", f"{1 / limit:.1f}", report.milliseconds(limit),
               report.milliseconds(limit * os.cpu_count()), "", "", "1"))
  return rows, bars


def _pair_row(label: str, files: str, rounds: blocks.Rounds) -> tuple[str, ...]:
  """Returns the row of a model in the table of the pair."""
  base, other = (blocks.median([blocks.Cost(*cost) for cost in rounds[way]]) for way in _PAIR)
  ratio = blocks.ratio(rounds, _PAIR[1], _BASE)
  return (
      label, files, *(report.milliseconds(cost.seconds) for cost in (base, other)),
      *(report.milliseconds(cost.cpu_seconds) for cost in (base, other)), f"{ratio.median:.3f}{_slower(ratio)}",
      report.interval(ratio, digits=3))


def _slower(ratio: blocks.Ratio) -> str:
  return " **slower**" if ratio.high < _LEAST else ""


_TITLES = {"local": "Local files", "remote": "Files behind the latency of remote storage"}


def _write(results: dict[str, Any]) -> parts.Page:
  tables, groups = [], []
  pairs = [("model", "files", "no stage, ms", "SmartStage, ms", "no stage, CPU ms", "SmartStage, CPU ms",
            "times as fast", report.INTERVAL)]
  for files in _FILES:
    table = [("model", "way", "steps/s", "ms per step", "CPU ms per step", "times as fast as no stage", report.INTERVAL,
              "time / limit")]
    for name in models.NAMES:
      if _part(name, files) in results:
        label = models.load(name).name
        result = Result(*results[_part(name, files)])
        pairs.append(_pair_row(label, files, result.pair))
        rows, bars = _rows(label, result.all)
        table += rows
        groups.append(pictures.Group(f"{label}, {files} files", bars))
    if len(table) > 1:
      tables.append(f"### {_TITLES[files]}\n\n{report.markdown(table, left=2)}")
  text = "\n\n".join(tables)
  return parts.Page(
      f"""# Models, with and without stages

{report.command("models")}

## With SmartStage, and without

{report.markdown(pairs, left=2)}

## All ways

{text}

## What was measured

The models of modelzoo/ with their default sizes, trained on {_ROWS:,} rows of lines of text in batches of {_BATCH}, a
record a step. In *no stage*, the base, tf.data reads files in parallel, parses and prepares batches in parallel, as
many at once as it chooses, and prefetches them. `tf.staged` takes these records ahead of the step, and SmartStage all
that needs no variable; both hold {_SMART.capacity} records and have one producer. With *AUTOTUNE*, SmartStage chooses
both numbers. With *plain `tf.data`*, the graph parses and prepares the lines that tf.data reads, in the step or ahead
of it.

{remote_files.DESCRIPTION}

All ways of a model are open in one process and take turns; the numbers are medians of {_ROUNDS} rounds, those of the
first table of {_PAIR_ROUNDS}. *Times as fast* is the median of the ratios of the rounds, with its confidence interval
beside it; an interval below {_LEAST} is marked.
It does not cover what [equal sessions](equal_sessions.md) of one process differ by.
CPU time is that of all threads. The limit is the CPU time of a record and of a step, each measured alone without a
stage, divided by the cores: the time of a step if no core ever idled, and running ahead cost nothing.""",
      pictures.bars("Times as fast as without a stage, with tf.data's best", groups, mark=1.0))


def _part(name: str, files: str) -> str:
  return f"{name}_{files}"


if __name__ == "__main__":
  parts.main(
      __file__, __doc__, {
          _part(name, files): lambda quick, name=name, files=files: _measure(name, files, quick)
          for files in _FILES for name in models.NAMES
      }, _write, quick=("dssm_remote",))
