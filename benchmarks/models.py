#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what stages gain for the models of modelzoo/ beside the best of tf.data, for benchmarks/models.md.

`.venv/bin/python benchmarks/models.py > benchmarks/models.md` takes about an hour; `--quick` tries whether it works.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from typing import Any

from lib import blocks
from lib import model_runs
from lib import parts_command_line
from lib import remote_files
from lib import report
from lib.model_runs import Way

from modelzoo.base import model as models
from modelzoo.base.dataset import Input
from modelzoo.base.staging import Staging
from modelzoo.base.training import Run

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
# Behind the latency, a block has to cover several of the sleeps.
_EFFORTS = {"local": blocks.Effort(0.8, 1.2, rounds=12), "remote": blocks.Effort(0.8, 1.8, rounds=8)}
# The limit needs fewer rounds than a ratio.
_ALONE_ROUNDS = 4
_QUICK_WAYS = (_BASE, "SmartStage")
_QUICK_ROWS = 600
_QUICK_BATCH = 32
_QUICK_EFFORT = blocks.Effort(0.1, 0.2, rounds=1)
# A stage should never be less than this times as fast as the same program without it.
_LEAST = 0.99


def _measure(name: str, files: str, quick: bool) -> blocks.Rounds:
  """Measures all ways of a model, and its record and its step alone."""
  model = models.load(name)
  if files == "remote":
    model = remote_files.reading(model)
  rows, batch = (_QUICK_ROWS, _QUICK_BATCH) if quick else (_ROWS, _BATCH)
  ways, effort = (_QUICK_WAYS, _QUICK_EFFORT) if quick else (_WAYS, _EFFORTS[files])
  with model_runs.files_of(model, rows) as data:

    def run(way: str) -> Run:
      source = Input(data=data, batch_size=batch, tf_data=_WAYS[way].tf_data)
      return Run(model, model.hyperparameters(), source, staging=_WAYS[way].staging)

    base = run(_BASE)
    record = model_runs.one_record(base)
    rounds = blocks.in_new_sessions({way: functools.partial(model_runs.stepping, run(way)) for way in ways}, effort)
    alone = blocks.in_new_sessions(
        {
            _RECORD: functools.partial(model_runs.preparing, base),
            _STEP: functools.partial(model_runs.stepping, base, record),
        }, effort._replace(rounds=min(effort.rounds, _ALONE_ROUNDS)))
    return rounds | alone


def _rows(label: str, rounds: blocks.Rounds) -> list[tuple[str, ...]]:
  """Returns the rows of a model in the table."""
  costs = {name: blocks.median([blocks.Cost(*cost) for cost in values]) for name, values in rounds.items()}
  limit = report.limit(costs[_RECORD], costs[_STEP], os.cpu_count())
  rows = []
  for way in (way for way in _WAYS if way in rounds):
    cost, ratio = costs[way], blocks.ratio(rounds, way, _BASE)
    slower = blocks.ratio(rounds, way, _without_stage(way)).high < _LEAST
    rows.append((
        label, way, f"{1 / cost.seconds:.1f}", report.milliseconds(cost.seconds),
        report.milliseconds(cost.cpu_seconds), f"{ratio.median:.3f}{' **slower**' if slower else ''}",
        report.interval(ratio, digits=3), f"{cost.seconds / limit:.2f}"))
    label = ""
  rows.append(("", "the limit", f"{1 / limit:.1f}", report.milliseconds(limit),
               report.milliseconds(limit * os.cpu_count()), "", "", "1"))
  return rows


def _without_stage(way: str) -> str:
  """Returns the way in which tf.data does the same, and no stage runs."""
  return next(
      name for name, other in _WAYS.items()
      if other.tf_data == _WAYS[way].tf_data and other.staging.staging == "none")


_TITLES = {"local": "From local files", "remote": "From files behind the latency of remote storage"}


def _write(results: dict[str, Any]) -> str:
  tables = []
  for files in _FILES:
    table = [("model", "way", "steps/s", "ms per step", "CPU ms per step", "times as fast as no stage", report.INTERVAL,
              "time / limit")]
    for name in models.NAMES:
      if _part(name, files) in results:
        table += _rows(models.load(name).name, results[_part(name, files)])
    if len(table) > 1:
      tables.append(f"## {_TITLES[files]}\n\n{report.markdown(table, left=2)}")
  text = "\n\n".join(tables)
  return f"""# Models, with and without stages

{report.command("models")}

{text}

## What was measured

The models of modelzoo/ with their default sizes, trained on {_ROWS:,} rows of lines of text in batches of {_BATCH}, a
record a step. In *no stage*, the base, tf.data reads files in parallel, parses and prepares batches in parallel, as
many at once as it chooses, and prefetches them. `tf.staged` takes these records ahead of the step, and SmartStage all
that needs no variable; both hold {_SMART.capacity} records and have one producer. With *AUTOTUNE*, SmartStage chooses
both numbers. With *plain `tf.data`*, the graph parses and prepares the lines that tf.data reads, in the step or ahead
of it.

{remote_files.DESCRIPTION}

In each round, each way of a model is opened in a new session, warmed up and measured, one after the other in one
process; the numbers are medians of {_EFFORTS["local"].rounds} rounds for local files, and of
{_EFFORTS["remote"].rounds} for remote ones. So a ratio covers what [equal sessions](results.md) differ by. A
session is measured {_EFFORTS["local"].warm_up_seconds} s after its start, for {_EFFORTS["local"].seconds} s, or
{_EFFORTS["remote"].seconds} s with remote files. tf.data's tuner may still be raising its parallelism then, and its
buffers may still fill. [models_closely.md](models_closely.md) compares two of the ways more closely.

*Times as fast* is the median of the ratios of the rounds, with its confidence interval beside it. A stage is marked as
slower if the whole interval of its ratio to the same tf.data without a stage is below {_LEAST}.

CPU time is that of all threads. The limit is the CPU time of a record and of a step, each measured alone without a
stage, divided by the cores: the time of a step if no core ever idled, and running ahead cost nothing."""


def _part(name: str, files: str) -> str:
  return f"{name}_{files}"


if __name__ == "__main__":
  parts_command_line.main(
      __file__, __doc__, {
          _part(name, files): lambda quick, name=name, files=files: _measure(name, files, quick)
          for files in _FILES for name in models.NAMES
      }, _write, quick=("dssm_remote",))
