#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Feeds one model by every kind of input pipeline, with equal work, for benchmarks/pipelines.md.

`.venv/bin/python benchmarks/pipelines.py > benchmarks/pipelines.md` takes about seven minutes; `--quick` tries whether
it works.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from lib import blocks
from lib import hidden_layer
from lib import parts_command_line
from lib import report
from lib import ways

_BATCHES = {"256": 256, "32": 32}
_CAPACITY = 4
_EFFORT = blocks.Effort(0.2, 0.6, rounds=20)
_CHECKED_STEPS = 10
_QUICK_EFFORT = blocks.Effort(0.01, 0.02, rounds=1)

_BASE = "placeholder, `feed_dict`"
_RECORD = "the record alone"
_STEP = "the step alone"


def _tuned(batch: int) -> ways.Way:
  """Returns the way in which tf.data chooses how many records it maps at once, and how many it keeps."""
  dataset = lambda: tf.data.Dataset.counter().map(
      lambda number: tuple(hidden_layer.numbered(number, batch)),
      num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
  return lambda source, capacity: ways.data(source._replace(dataset=dataset), capacity)


_WAYS: dict[str, ways.Way] = {
    "queue, `FIFOQueue` and `QueueRunner`": ways.fifo_queue,
    "`tf.data`": ways.data,
    "`tf.data`, `prefetch`": ways.data_prefetch,
    "`StagingArea`, a Python thread": ways.staging_area,
    "`tf.staged`": ways.staged,
    "SmartStage": ways.smart_stage,
}


@contextlib.contextmanager
def _feeding(batch: int) -> Iterator[blocks.Step]:
  """Computes each record in a call of its own, and feeds it to the step, in the way that costs least."""
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    record = hidden_layer.source(batch).record()
    fed = [tf.compat.v1.placeholder(tensor.dtype, tensor.shape) for tensor in record]
    fetched = hidden_layer.train(fed)
    session.run(tf.compat.v1.global_variables_initializer())
    prepare = session.make_callable(record)
    step = session.make_callable(fetched, feed_list=fed)
    yield lambda: step(*prepare())


def _measure(batch: int, quick: bool) -> blocks.Rounds:
  """Returns the costs of each way, after a check that all of them do the same work."""
  source = hidden_layer.source(batch)
  tuned = {"`tf.data`, `map` and `prefetch` of AUTOTUNE": _tuned(batch)}
  openers: dict[str, blocks.Open] = {_BASE: functools.partial(_feeding, batch)}
  for name, way in (_WAYS | tuned).items():
    openers[name] = functools.partial(ways.step_of, way, source, hidden_layer.train, _CAPACITY)
  losses = {}
  for name, opener in openers.items():
    with opener() as step:
      losses[name] = [float(step()[0]) for _ in range(_CHECKED_STEPS)]
    np.testing.assert_allclose(losses[name], losses[_BASE], rtol=1e-3, err_msg=f"{name} does not do the same work")
  openers[_RECORD] = functools.partial(ways.step_of, ways.no_stage, source, ways.computed)
  openers[_STEP] = functools.partial(ways.step_of, ways.data, hidden_layer.same_record(batch), hidden_layer.train)
  return blocks.in_new_sessions(openers, _QUICK_EFFORT if quick else _EFFORT)


def _table(rounds: blocks.Rounds) -> str:
  costs = {name: blocks.median([blocks.Cost(*cost) for cost in values]) for name, values in rounds.items()}
  limit = report.limit(costs[_RECORD], costs[_STEP], os.cpu_count())
  rows: list[tuple[str, ...]] = [
      ("way", "steps/s", "ms per step", "CPU ms per step", "times as fast as `feed_dict`", report.INTERVAL,
       "time / limit")]
  for name, cost in costs.items():
    alone = name in (_RECORD, _STEP)
    ratio = blocks.ratio(rounds, name, _BASE)
    rows.append((
        name, f"{1 / cost.seconds:.1f}", report.milliseconds(cost.seconds), report.milliseconds(cost.cpu_seconds),
        "" if alone else f"{ratio.median:.3f}", "" if alone else report.interval(ratio, digits=3),
        "" if alone else f"{cost.seconds / limit:.2f}"))
  rows.append(("the limit", f"{1 / limit:.1f}", report.milliseconds(limit), report.milliseconds(limit * os.cpu_count()),
               "", "", "1"))
  return report.markdown(rows)


def _write(results: dict[str, Any]) -> str:
  text = "\n\n".join(f"## Batches of {name} rows\n\n{_table(rounds)}" for name, rounds in results.items())
  return f"""# One model, fed by every kind of pipeline

{report.command("pipelines")}

{text}

A record has a batch of rows with {hidden_layer.SIZE} random numbers each, and whether their sum is positive. The model
has one hidden layer of {hidden_layer.SIZE} units, and trains by gradient descent. The work is equal: each way computes
the records with the same ops from the numbers 0, 1, 2 and so on, with one producer, in this order, and the first
{_CHECKED_STEPS} losses of all ways are the same. Buffers hold {_CAPACITY} records. The placeholder is fed by what
`make_callable` returns, with the arrays that another call returned. In each round, each way is opened in a new session,
warmed up and measured, one after the other in one process; the numbers are medians of {_EFFORT.rounds} rounds. *Times
as fast* is the median of the ratios of the rounds, with its confidence interval beside it.

CPU time is that of all threads. *The record alone* only computes records; *the step alone* trains on one record that
is in memory. The limit is the sum of their CPU times, divided by the cores: the time of a step if no core ever idled,
and handing over a record cost nothing."""


if __name__ == "__main__":
  parts_command_line.main(
      __file__, __doc__, {name: lambda quick, batch=batch: _measure(batch, quick) for name, batch in _BATCHES.items()},
      _write, quick=("32",))
