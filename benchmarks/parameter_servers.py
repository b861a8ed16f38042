#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains DLRM with a parameter server and two workers behind a network's delay, for benchmarks/parameter_servers.md.

`.venv/bin/python benchmarks/parameter_servers.py >
benchmarks/parameter_servers.md` takes about 15 minutes; `--quick` tries whether it works.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any

from lib import blocks
from lib import local_cluster
from lib import model_runs
from lib import parts_command_line
from lib import report

from modelzoo.base import model as models
from modelzoo.base.dataset import Input
from modelzoo.base.settings import Settings
from modelzoo.base.staging import Staging
from modelzoo.base.training import Run

_MODEL = "dlrm"
# Of one machine, of a data centre, and of a slow network, where the wait for the server leaves cores idle.
_DELAYS = {"0": 0.0, "250": 250e-6, "3000": 3e-3}
_SMART = Staging(staging="smart")
_BASE = "no stage"
_WAYS = {
    _BASE: Staging(),
    "`tf.staged`": Staging(staging="staged"),
    "SmartStage": _SMART,
    "SmartStage, AUTOTUNE": Staging(staging="smart", capacity=0, threads=0),
    "SmartStage, lookups ahead": Staging(staging="smart", async_embedding=2),
}
_ROWS = 40_000
_BATCH = 256
_EFFORT = blocks.Effort(1.0, 1.6, rounds=16)
_QUICK_ROWS = 400
_QUICK_BATCH = 32
_QUICK_EFFORT = blocks.Effort(0.1, 0.2, rounds=1)
_QUICK_WAYS = (_BASE, "SmartStage")
_QUICK_SIZES = dict(buckets=100, embedding_size=4, bottom=(8,), top=(8,))


def _sizes(quick: bool) -> Settings:
  return models.load(_MODEL).hyperparameters(**(_QUICK_SIZES if quick else {}))


def _measure(delay: float, quick: bool) -> dict[str, list[blocks.Cost]]:
  """Returns the costs of a step of the ways; a worker's step counts like that of the other."""
  model = models.load(_MODEL)
  with contextlib.ExitStack() as stack:
    rows, batch = (_QUICK_ROWS, _QUICK_BATCH) if quick else (_ROWS, _BATCH)
    data = stack.enter_context(model_runs.files_of(model, rows))
    files = Input(data=data, batch_size=batch, tf_data="best")
    workers = stack.enter_context(local_cluster.workers(delay))

    @contextlib.contextmanager
    def training(staging: Staging) -> Iterator[blocks.Step]:
      run = Run(model, _sizes(quick), files, staging=staging)
      with local_cluster.training(run, workers) as (step, _):
        yield step

    rounds = blocks.in_new_sessions(
        {
            way: functools.partial(training, staging)
            for way, staging in _WAYS.items() if not quick or way in _QUICK_WAYS
        }, _QUICK_EFFORT if quick else _EFFORT)
    count = local_cluster.STEPS_AT_ONCE * local_cluster.WORKERS
    return {name: [blocks.Cost(*(value / count for value in cost)) for cost in costs] for name, costs in rounds.items()}


def _write(results: dict[str, Any]) -> str:
  table: list[tuple[str, ...]] = [
      ("one-way delay", "way", "steps/s", "ms per step", "CPU ms per step", "times as fast as no stage",
       report.INTERVAL, "time / limit")]
  for key, rounds in results.items():
    costs = {name: blocks.median([blocks.Cost(*cost) for cost in values]) for name, values in rounds.items()}
    limit = costs[_BASE].cpu_seconds / os.cpu_count()
    label = f"{_DELAYS[key] * 1e6:.0f} µs"
    for way, cost in costs.items():
      ratio = blocks.ratio(rounds, way, _BASE)
      table.append((
          label if way == _BASE else "", way, f"{1 / cost.seconds:.1f}", report.milliseconds(cost.seconds),
          report.milliseconds(cost.cpu_seconds), f"{ratio.median:.3f}", report.interval(ratio, digits=3),
          f"{cost.seconds / limit:.2f}"))
    table.append(("", "the limit", f"{1 / limit:.1f}", report.milliseconds(limit),
                  report.milliseconds(limit * os.cpu_count()), "", "", "1"))
  return f"""# A parameter server and two workers

{report.command("parameter_servers")}

{report.markdown(table, left=2)}

DLRM of modelzoo/ with its default sizes and batches of {_BATCH} rows. There is a parameter server, which has all
variables, and {local_cluster.WORKERS} workers; steps are those of both together. In *no stage*, the base, tf.data
parses and prepares batches in parallel, and prefetches them; the stages run on top of that, with {_SMART.capacity}
records and one producer, or, with *AUTOTUNE*, what SmartStage chooses. With *lookups ahead*, embeddings are looked up 2
records before the step that uses them, which may miss the updates of 3 steps. The servers talk through a proxy, a
process of its own, that delays what they send by the given time, in each direction; the proxy's own work, on the same
cores, adds to it, also in the first case.

The servers of a delay are in one process. In each round, each way is opened in new sessions, warmed up and measured,
one after the other; the numbers are medians of {_EFFORT.rounds} rounds, the interval that of the median of their
ratios. A worker runs {local_cluster.STEPS_AT_ONCE} steps, then waits for the other. CPU time is that of all servers,
without the proxy. The limit is the CPU time of a step of the base, divided by the cores."""


if __name__ == "__main__":
  parts_command_line.main(
      __file__, __doc__, {key: lambda quick, delay=delay: _measure(delay, quick) for key, delay in _DELAYS.items()},
      _write, quick=("250",))
