#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains DLRM with a parameter server and two workers behind a network's delay, for benchmarks/parameter_servers.md.

`.venv/bin/python benchmarks/parameter_servers.py --picture=benchmarks/parameter_servers.svg >
benchmarks/parameter_servers.md` takes about 15 minutes; `--quick` tries whether it works.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import socket
import tempfile
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent import futures
from typing import Any

import blocks
import delay_proxy
import model_runs
import parts
import pictures
import report
import tensorflow as tf

from modelzoo.base import model as models
from modelzoo.base.cluster import Cluster
from modelzoo.base.dataset import Input
from modelzoo.base.settings import Settings
from modelzoo.base.staging import Staging
from modelzoo.base.training import Run

_MODEL = "dlrm"
_WORKERS = 2
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
_STEPS_AT_ONCE = 4
_ROWS = 40_000
_BATCH = 256
_EFFORT = blocks.Effort(1.0, 1.6, rounds=16)
_QUICK_ROWS = 400
_QUICK_BATCH = 32
_QUICK_EFFORT = blocks.Effort(0.1, 0.2, rounds=1)
_QUICK_WAYS = (_BASE, "SmartStage")
_QUICK_SIZES = dict(buckets=100, embedding_size=4, bottom=(8,), top=(8,))


def _free_ports(count: int) -> list[int]:
  with contextlib.ExitStack() as stack:
    sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
    return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def _servers(delay: float) -> Iterator[list[tf.distribute.Server]]:
  """Starts a parameter server and the workers, in this process; each reaches the others through the proxy."""
  ports = _free_ports(1 + _WORKERS)
  with delay_proxy.DelayProxy(ports, delay) as proxied:
    servers = []
    for own in range(len(ports)):
      addresses = [f"localhost:{(ports if task == own else proxied)[task]}" for task in range(len(ports))]
      cluster = tf.train.ClusterSpec({"ps": addresses[:1], "worker": addresses[1:]})
      job, task = ("worker", own - 1) if own else ("ps", 0)
      servers.append(tf.distribute.Server(cluster, job_name=job, task_index=task))
    yield servers


@contextlib.contextmanager
def _training(run: Run, workers: Sequence[tf.distribute.Server]) -> Iterator[blocks.Step]:
  """Opens the workers' sessions; yields a function in which each worker runs some steps, at the same time."""
  with contextlib.ExitStack() as stack:
    steps = []
    for task, server in enumerate(workers):
      # The addresses do not matter for the graph.
      cluster = Cluster(job="worker", task=task, ps=("ps:1",), workers=("worker:1",) * _WORKERS)
      worker = Run(run.model, run.hyperparameters, run.input, staging=run.staging, cluster=cluster)
      steps.append(stack.enter_context(model_runs.stepping(worker, target=server.target)))
    pool = stack.enter_context(futures.ThreadPoolExecutor(_WORKERS))

    def several(step: blocks.Step) -> None:
      for _ in range(_STEPS_AT_ONCE):
        step()

    yield lambda: list(pool.map(several, steps))
  # Servers keep variables, iterators and buffers beyond the session, and iterators go on to tune themselves.
  tf.Session.reset(workers[0].target)


def _sizes(quick: bool) -> Settings:
  return models.load(_MODEL).hyperparameters(**(_QUICK_SIZES if quick else {}))


def _measure(delay: float, quick: bool) -> dict[str, list[blocks.Cost]]:
  """Returns the costs of a step of the ways; a worker's step counts like that of the other."""
  # A process on this machine is reached without a proxy for the web.
  os.environ["no_proxy"] = "localhost"
  model = models.load(_MODEL)
  with contextlib.ExitStack() as stack:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    rows, batch = (_QUICK_ROWS, _QUICK_BATCH) if quick else (_ROWS, _BATCH)
    data = model_runs.write_files_of(model, folder, rows)
    files = Input(data=data, batch_size=batch, tf_data="best")
    _, *workers = stack.enter_context(_servers(delay))

    def run(staging: Staging) -> Run:
      return Run(model, _sizes(quick), files, staging=staging)

    rounds = blocks.in_new_sessions(
        {
            way: functools.partial(_training, run(staging), workers)
            for way, staging in _WAYS.items() if not quick or way in _QUICK_WAYS
        }, _QUICK_EFFORT if quick else _EFFORT)
    count = _STEPS_AT_ONCE * _WORKERS
    return {name: [blocks.Cost(*(value / count for value in cost)) for cost in costs] for name, costs in rounds.items()}


def _write(results: dict[str, Any]) -> parts.Page:
  table: list[tuple[str, ...]] = [
      ("one-way delay", "way", "steps/s", "ms per step", "CPU ms per step", "times as fast as no stage",
       report.INTERVAL, "time / limit")]
  groups = []
  for key, rounds in results.items():
    costs = {name: blocks.median([blocks.Cost(*cost) for cost in values]) for name, values in rounds.items()}
    limit = costs[_BASE].cpu_seconds / os.cpu_count()
    label = f"{_DELAYS[key] * 1e6:.0f} µs"
    bars = []
    for way, cost in costs.items():
      ratio = blocks.ratio(rounds, way, _BASE)
      table.append((
          label if way == _BASE else "", way, f"{1 / cost.seconds:.1f}", report.milliseconds(cost.seconds),
          report.milliseconds(cost.cpu_seconds), f"{ratio.median:.3f}", report.interval(ratio, digits=3),
          f"{cost.seconds / limit:.2f}"))
      bars.append(pictures.Bar(way.replace("`", ""), *ratio))
    table.append(("", "the limit", f"{1 / limit:.1f}", report.milliseconds(limit),
                  report.milliseconds(limit * os.cpu_count()), "", "", "1"))
    groups.append(pictures.Group(f"{label} under way", bars[1:]))
  return parts.Page(
      f"""# A parameter server and two workers

{report.command("parameter_servers")}

{report.markdown(table, left=2)}

DLRM of modelzoo/ with its default sizes and batches of {_BATCH} rows. There is a parameter server, which has all
variables, and {_WORKERS} workers; steps are those of both together. In *no stage*, the base, tf.data parses and
prepares batches in parallel, and prefetches them; the stages run on top of that, with {_SMART.capacity} records and one
producer, or, with *AUTOTUNE*, what SmartStage chooses. With *lookups ahead*, embeddings are looked up 2 records before
the step that uses them, which may miss the updates of 3 steps. The servers talk through a proxy, a process of its own,
that delays what they send by the given time, in each direction; the proxy's own work, on the same cores, adds to it,
also in the first case.

The servers of a delay are in one process. In each round, each way is opened in new sessions, warmed up and measured,
one after the other; the numbers are medians of {_EFFORT.rounds} rounds, the interval that of the median of their
ratios. A worker runs {_STEPS_AT_ONCE} steps, then waits for the other. CPU time is that of all servers, without the
proxy. The limit is the CPU time of a step of the base, divided by the cores.""",
      pictures.bars("Times as fast as without a stage", groups, mark=1.0))


if __name__ == "__main__":
  parts.main(
      __file__, __doc__, {key: lambda quick, delay=delay: _measure(delay, quick) for key, delay in _DELAYS.items()},
      _write, quick=("250",))
