#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a stage that calls Python on its own threads and on the session's, for benchmarks/producer_threads.md.

`.venv/bin/python benchmarks/producer_threads.py` prints its table and takes about two minutes.
"""

from __future__ import annotations

import contextlib
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple

import numpy as np
import stage_thread_pools
import tensorflow as tf
from lib import plain_command_line
from tensorflow.core.protobuf import config_pb2

from tensorflow_staging.python.session import needed_runners

tf1 = tf.compat.v1

_CORES = 2
_ROUNDS = 60
_READ_SECONDS = 0.010

# Adds the ops of a step to the graph, and returns its target.
Program = Callable[[], tf.Operation]


class Case(NamedTuple):
  program: Program
  # In each round, after the warm-up.
  steps: int


class Cost(NamedTuple):
  """Microseconds of one step."""

  wall: float
  # The time that all threads ran, in user mode and in the kernel.
  cpu: float


def _number(*inputs: tf.Tensor) -> tf.Tensor:
  """Adds a Python function that returns at once."""
  number = np.float32(1)
  return tf.ensure_shape(tf.numpy_function(lambda *unused: number, inputs, tf.float32), [])


def _alone() -> tf.Operation:
  return tf.staged(_number()).op


def _several() -> tf.Operation:
  """Four Python functions that do not depend on each other."""
  return tf.raw_ops.IdentityN(input=tf.staged([_number() for _ in range(4)]))[0].op


def _chain() -> tf.Operation:
  """Three stages of which each calls Python with the records of the one before."""
  number = _number()
  for _ in range(2):
    number = _number(tf.staged(number))
  return tf.staged(number).op


def _elements() -> tf.data.Dataset:
  return tf.data.Dataset.range(1_000_000_000)


def _after_an_iterator(**options: Any) -> Program:
  """The iterator's own thread continues the run."""
  return lambda: tf.staged(_number(tf1.data.make_one_shot_iterator(_elements()).get_next()), **options).op


def _in_a_dataset(calls: int | None = None) -> Program:
  return lambda: tf.staged(
      tf1.data.make_one_shot_iterator(_elements().map(_number, num_parallel_calls=calls)).get_next()).op


def _wide(**options: Any) -> Program:
  """Much work beside a Python function."""

  def program() -> tf.Operation:
    features, _ = tf.staged([stage_thread_pools._features(), _number()], **options)
    return stage_thread_pools._train(features)

  return program


def _sleeping() -> tf.Operation:
  """As in the demo, the storage answers after a while."""
  batch = np.ones([stage_thread_pools._BATCH, stage_thread_pools._UNITS], np.float32)

  def read() -> np.ndarray:
    time.sleep(_READ_SECONDS)
    return batch

  features = tf.ensure_shape(tf.numpy_function(read, [], tf.float32), batch.shape)
  return stage_thread_pools._train(tf.staged(features))


def _without_python() -> tf.Operation:
  """Runs on the session's threads both times, and so shows how much the numbers vary."""
  return tf.staged(tf1.data.make_one_shot_iterator(_elements()).get_next()).op


_CASES = {
    "a function": Case(_alone, 200),
    "four functions": Case(_several, 200),
    "three stages in a chain": Case(_chain, 200),
    "an iterator and a function": Case(_after_an_iterator(), 200),
    "the same, 4 producers": Case(_after_an_iterator(num_threads=4, capacity=8), 200),
    "a dataset that calls a function": Case(_in_a_dataset(), 200),
    "the same, 2 calls at once": Case(_in_a_dataset(2), 200),
    "a wide region and a function": Case(_wide(), 15),
    "the same, 8 producers": Case(_wide(num_threads=8, capacity=16), 15),
    "storage that sleeps": Case(_sleeping, 15),
    "no Python, the same threads": Case(_without_python, 200),
}


def _config() -> config_pb2.ConfigProto:
  config = tf1.ConfigProto(intra_op_parallelism_threads=_CORES, inter_op_parallelism_threads=_CORES)
  # Pool 0 is that of the steps. Under one name they are one pool, and a run that chooses pool 1 shares their threads.
  for _ in range(2):
    config.session_inter_op_thread_pool.add(num_threads=_CORES, global_name="session")
  return config


@contextlib.contextmanager
def _on_the_sessions_threads() -> Iterator[None]:
  """Lets the runners that start meanwhile run their stages on the session's threads."""
  of_session = needed_runners.of_session

  def choose(*args: Any) -> list[bytes]:
    runners = [config_pb2.PrefetchRunnerOptions.FromString(runner) for runner in of_session(*args)]
    for runner in runners:
      runner.run_options.inter_op_thread_pool = 1
    return [runner.SerializeToString() for runner in runners]

  needed_runners.of_session = choose
  try:
    yield
  finally:
    needed_runners.of_session = of_session


@contextlib.contextmanager
def _open(case: Case, threads: contextlib.AbstractContextManager) -> Iterator[Callable[[], None]]:
  """Opens a graph and a session; yields a function that runs one step."""
  with tf.Graph().as_default():
    target = case.program()
    with tf1.Session(config=_config()) as session:
      session.run(tf1.global_variables_initializer())
      with contextlib.ExitStack() as stack:
        with threads:
          stack.enter_context(tf.make_prefetch_hook().running(session))
        yield session.make_callable(target)


def _cost(step: Callable[[], None], steps: int) -> Cost:
  for _ in range(max(steps // 5, 3)):
    step()
  wall, cpu = time.perf_counter(), time.process_time()
  for _ in range(steps):
    step()
  return Cost((time.perf_counter() - wall) / steps * 1e6, (time.process_time() - cpu) / steps * 1e6)


def _measure(case: Case) -> tuple[list[Cost], list[Cost]]:
  """Returns the costs on the session's and on the stage's own threads. They take turns, in an alternating order."""
  with _open(case, _on_the_sessions_threads()) as session, _open(case, contextlib.nullcontext()) as own:
    ways = [(session, []), (own, [])]
    for turn in range(_ROUNDS):
      for step, costs in ways[:: (-1) ** turn]:
        costs.append(_cost(step, case.steps))
  return ways[0][1], ways[1][1]


def _cells(before: list[float], after: list[float]) -> tuple[str, ...]:
  ratios = [b / a for a, b in zip(before, after, strict=True)]
  low, middle, high = statistics.quantiles(ratios, n=4)
  return (
      f"{statistics.median(before):.0f}", f"{statistics.median(after):.0f}", f"{middle:.2f}", f"{low:.2f}–{high:.2f}")


def main() -> None:
  os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:_CORES])
  tf1.logging.set_verbosity(tf1.logging.ERROR)
  rows = [("region", *(f"{what}, {unit}" for unit in ("wall", "CPU") for what in
                       ("session, µs", "own, µs", "ratio", "middle half")))]
  rows.append(("---", *("---:" for _ in rows[0][1:])))
  for name, case in _CASES.items():
    before, after = _measure(case)
    rows.append((
        name,
        *_cells([cost.wall for cost in before], [cost.wall for cost in after]),
        *_cells([cost.cpu for cost in before], [cost.cpu for cost in after])))
    print(rows[-1], file=sys.stderr)
  print("# A stage that calls Python, on its own threads and on the session's\n")
  print(
      "`.venv/bin/python benchmarks/producer_threads.py`, one run on"
      f" {_CORES} cores, {platform.system()} {platform.machine()}.\n")
  print("\n".join(f"| {' | '.join(row)} |" for row in rows))


if __name__ == "__main__":
  plain_command_line.check(__doc__)
  main()
