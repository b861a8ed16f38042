#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a heavy stage and a training step that compete for two cores, for benchmarks/stage_thread_pools.md.

`.venv/bin/python benchmarks/stage_thread_pools.py > benchmarks/stage_thread_pools.md` takes about three minutes.
"""

from __future__ import annotations

import contextlib
import os
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from lib import plain_command_line

tf1 = tf.compat.v1

_CORES = 2
_ROUNDS = 10
# At least the capacity of the buffer. The stage, which waited with a full buffer, then runs beside the step again.
_WARM_UP_STEPS = 40
_MEASURED_STEPS = 100

# The stage computes wide matrix products, each of which splits over all threads that it may use.
_STAGE_PRODUCTS = 6
_STAGE_SIZE = 320
# The step trains a deep net of small layers, each of which waits for the one before.
_LAYERS = 48
_BATCH = 64
_UNITS = 192

# A wide stage computes this many records at once, and its buffer holds this many.
_WIDE = 8
_WIDE_CAPACITY = 16

_NO_STAGE = "no stage"
_SHARED = "a stage on the session's threads"
_POOL = "a stage on a pool of one thread"
_WIDE_SHARED = f"a stage of {_WIDE} records at once on the session's threads"
_WIDE_POOL = f"a stage of {_WIDE} records at once on a pool of one thread"
_STEP = "the step alone"
_STAGE = "the stage alone"


def _features() -> tf.Tensor:
  """Adds the region: it computes a batch of features, which is much more work than a step."""
  weights = tf.constant(1 / _STAGE_SIZE, shape=[_STAGE_SIZE, _STAGE_SIZE])
  parts = []
  for _ in range(_STAGE_PRODUCTS):
    part = tf1.random_uniform([_STAGE_SIZE, _STAGE_SIZE])
    parts.append(tf.matmul(part, weights)[:_BATCH, :_UNITS])
  return tf.add_n(parts)


def _train(features: tf.Tensor) -> tf.Operation:
  """Adds a training step on these features."""
  hidden = features
  for layer in range(_LAYERS):
    weights = tf1.get_variable(f"layer_{layer}", [_UNITS, _UNITS])
    hidden = tf.nn.relu(tf.matmul(hidden, weights))
  loss = tf.reduce_mean(tf.square(hidden))
  return tf1.train.GradientDescentOptimizer(0.01).minimize(loss)


def _no_stage() -> tf.Operation:
  return _train(_features())


def _staged(**options: Any) -> Callable[[], tf.Operation]:
  return lambda: _train(tf.staged(_features(), **options))


def _step() -> tf.Operation:
  return _train(tf.ones([_BATCH, _UNITS]))


def _stage() -> tf.Operation:
  return _features().op


_WAYS: dict[str, Callable[[], tf.Operation]] = {
    _NO_STAGE: _no_stage,
    _SHARED: _staged(),
    _POOL: _staged(use_stage_subgraph_thread_pool=True),
    _WIDE_SHARED: _staged(num_threads=_WIDE, capacity=_WIDE_CAPACITY),
    _WIDE_POOL: _staged(num_threads=_WIDE, capacity=_WIDE_CAPACITY, use_stage_subgraph_thread_pool=True),
    _STEP: _step,
    _STAGE: _stage,
}


@contextlib.contextmanager
def _open(way: Callable[[], tf.Operation]):
  """Opens a graph and a session; yields a function that runs one step."""
  config = tf1.ConfigProto(
      intra_op_parallelism_threads=_CORES, inter_op_parallelism_threads=_CORES, use_per_session_threads=True)
  config.session_stage_subgraph_thread_pool.add(inter_op_threads_num=1, intra_op_threads_num=1)
  with tf.Graph().as_default(), tf1.Session(config=config) as session:
    step = way()
    session.run(tf1.global_variables_initializer())
    with tf.make_prefetch_hook().running(session):
      yield session.make_callable(step)


def _seconds(step: Callable[[], None]) -> list[float]:
  """Returns the seconds of each step after the warm-up."""
  for _ in range(_WARM_UP_STEPS):
    step()
  times = [time.perf_counter()]
  for _ in range(_MEASURED_STEPS):
    step()
    times.append(time.perf_counter())
  return [end - begin for begin, end in zip(times, times[1:], strict=False)]


def _measure() -> dict[str, list[float]]:
  """Returns the seconds of every step. The ways take turns, in an order that alternates between rounds."""
  with contextlib.ExitStack() as stack:
    steps = {name: stack.enter_context(_open(way)) for name, way in _WAYS.items()}
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(_ROUNDS):
      for name, step in list(steps.items())[:: (-1) ** turn]:
        seconds[name] += _seconds(step)
    return seconds


def main() -> None:
  os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:_CORES])
  tf1.logging.set_verbosity(tf1.logging.ERROR)
  seconds = _measure()
  print("# A heavy stage and a training step on two cores\n")
  print(
      "`.venv/bin/python benchmarks/stage_thread_pools.py > benchmarks/stage_thread_pools.md`, one run on"
      f" {_CORES} cores, {platform.system()} {platform.machine()}.\n")
  print("| way | p50, ms per step | p99, ms per step | p99 / p50 | mean, ms per step |")
  print("| --- | ---: | ---: | ---: | ---: |")
  for name, values in seconds.items():
    percentiles = statistics.quantiles(values, n=100)
    p50, p99 = percentiles[49] * 1e3, percentiles[98] * 1e3
    print(f"| {name} | {p50:.2f} | {p99:.2f} | {p99 / p50:.2f} | {statistics.mean(values) * 1e3:.2f} |")
  print(f"""
The stage multiplies {_STAGE_PRODUCTS} pairs of {_STAGE_SIZE}×{_STAGE_SIZE} matrices. The products do not depend on
each other, and each splits over the threads that it may use. The step trains {_LAYERS} layers of {_UNITS} units on
a batch of {_BATCH}: many small operations, each of which waits for the one before. Every way has its own session
with {_CORES} inter-op and {_CORES} intra-op threads, on {_CORES} cores; the pool has one thread of each kind. The
buffer holds one record, or {_WIDE_CAPACITY} records for the wide stage. The ways take turns for {_ROUNDS} rounds of
{_MEASURED_STEPS} steps each, after {_WARM_UP_STEPS} steps that are not counted. The percentiles are over all
{_ROUNDS * _MEASURED_STEPS} steps of a way.

A record and a step are the same work in every way, and two cores that are never idle need about the same time for
it, so the ways with a stage of one record at once hardly differ. A wide stage on the session's threads fills their
queues ahead of the step; on a pool of one thread, it cannot use more than that thread.""")


if __name__ == "__main__":
  plain_command_line.check(__doc__)
  main()
