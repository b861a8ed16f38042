#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the first steps of a training, while the buffer of its stage fills, for benchmarks/first_steps.md.

`.venv/bin/python benchmarks/first_steps.py --picture=benchmarks/first_steps.svg > benchmarks/first_steps.md` takes
about seven minutes; `--quick` tries whether it works.
"""

from __future__ import annotations

import gc
from typing import Any
from typing import NamedTuple

from lib import blocks
from lib import model_runs
from lib import parts_command_line
from lib import pictures
from lib import report
from lib.model_runs import Way

from modelzoo.base import model as models
from modelzoo.base.dataset import Input
from modelzoo.base.staging import Staging
from modelzoo.base.training import Run

_BASE = "no stage"
_PLAIN = "plain `tf.data`, no stage"
# As much as DeepRec's models let their buffers hold.
_CAPACITY = 40
_WAYS = {
    _BASE: Way("best", Staging()),
    f"`tf.staged`, capacity {_CAPACITY}": Way("best", Staging(staging="staged", capacity=_CAPACITY)),
    f"SmartStage, capacity {_CAPACITY}": Way("best", Staging(staging="smart", capacity=_CAPACITY)),
    "SmartStage, AUTOTUNE": Way("best", Staging(staging="smart", capacity=0, threads=0)),
    _PLAIN: Way("plain", Staging()),
    f"plain `tf.data`, SmartStage, capacity {_CAPACITY}": Way("plain", Staging(staging="smart", capacity=_CAPACITY)),
}
_MODELS = ("dlrm", "deepfm")
_STEPS = 150


class Size(NamedTuple):
  """How much is measured."""

  rounds: int
  # The steps after the first.
  steps: int
  rows: int
  batch: int


_FULL = Size(rounds=16, steps=_STEPS - 1, rows=60_000, batch=256)
_QUICK = Size(rounds=1, steps=5, rows=600, batch=32)


class Rounds(NamedTuple):
  """The costs of a way in each round."""

  first: list[blocks.Cost]
  # Of one of the steps after the first.
  others: list[blocks.Cost]


def _measure(name: str, quick: bool) -> dict[str, Rounds]:
  size = _QUICK if quick else _FULL
  model = models.load(name)
  result = {way: Rounds([], []) for way in _WAYS}
  with model_runs.files_of(model, size.rows) as data:
    for turn in range(size.rounds):
      for title, way in list(_WAYS.items())[:: (-1) ** turn]:
        files = Input(data=data, batch_size=size.batch, tf_data=way.tf_data)
        with model_runs.stepping(Run(model, model.hyperparameters(), files, staging=way.staging)) as step:
          result[title].first.append(blocks.cost(step, 0, least_steps=1))
          result[title].others.append(blocks.cost(step, 0, least_steps=size.steps))
        gc.collect()
  return result


def _write(results: dict[str, Any]) -> parts_command_line.Page:
  table = [
      ("model", "way", "first step, ms", f"steps 2 to {_STEPS}, ms each", "CPU ms each",
       f"steps 2 to {_STEPS}: times as fast", report.INTERVAL, f"all {_STEPS} steps: times as fast", report.INTERVAL)]
  groups = []
  for name, by_way in results.items():
    label, bars = models.load(name).name, []
    rounds = {way: Rounds(*([blocks.Cost(*cost) for cost in costs] for costs in values))
              for way, values in by_way.items()}
    for way, (first, others) in rounds.items():
      base = rounds[_BASE if _WAYS[way].tf_data == "best" else _PLAIN]
      ratio = blocks.ratio({"way": others, "base": base.others}, "way", "base")
      whole = blocks.ratio({"way": _whole(rounds[way]), "base": _whole(base)}, "way", "base")
      cost = blocks.median(others)
      table.append((
          label, way, report.milliseconds(blocks.median(first).seconds), report.milliseconds(cost.seconds),
          report.milliseconds(cost.cpu_seconds), f"{ratio.median:.3f}", report.interval(ratio, digits=3),
          f"{whole.median:.3f}", report.interval(whole, digits=3)))
      if _WAYS[way].staging.staging != "none":
        bars.append(pictures.Bar(way.replace("`", ""), *ratio))
      label = ""
    groups.append(pictures.Group(models.load(name).name, bars))
  return parts_command_line.Page(
      f"""# The first steps, while a buffer fills

{report.command("first_steps")}

{report.markdown(table, left=2)}

A stage that fills its buffer computes more records than steps take, and on busy cores the steps pay for that. So a
buffer of more than 4 records [fills slowly](../docs/staged.md#how-a-buffer-fills) while steps take from it.

The models of modelzoo/ with their default sizes and batches of {_FULL.batch} rows, from local files. In *no stage*,
tf.data reads files in parallel, parses and prepares batches in parallel, as many at once as it chooses, and prefetches
them; with *plain `tf.data`*, the graph parses and prepares the lines that tf.data reads. *Times as fast* compares with
the same tf.data without a stage: the median of the ratios of {_FULL.rounds} rounds, with its confidence interval
beside it. In each round, each way is opened in a new session, one after the other in one process. CPU time is that of
all threads.""",
      pictures.bars(f"Steps 2 to {_STEPS}: times as fast as without a stage", groups, mark=1.0))


def _whole(rounds: Rounds) -> list[blocks.Cost]:
  """Returns the mean cost of all steps, the first included."""
  return [
      blocks.Cost(*((one + (_STEPS - 1) * other) / _STEPS for one, other in zip(first, others, strict=True)))
      for first, others in zip(rounds.first, rounds.others, strict=True)
  ]


if __name__ == "__main__":
  parts_command_line.main(
      __file__, __doc__, {name: lambda quick, name=name: _measure(name, quick) for name in _MODELS}, _write,
      quick=_MODELS[:1])
