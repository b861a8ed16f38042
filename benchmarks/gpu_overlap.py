#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures whether a stage goes on while the GPU computes a long step, for benchmarks/gpu.md.

The step takes no record, so that the stage may fill its buffer: after a take, a large buffer grows slowly, whatever the
GPU does (core/buffer/slow_start.h). Prints a table in Markdown, each row when it is known. Fails if a stage with
stage_subgraph_on_cpu makes fewer than half as many records during the step as beside an idle GPU. With `--device=cpu`
it tries itself on a machine without a GPU.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from typing import NamedTuple

import numpy as np
import tensorflow as tf

# The time that the region takes for a record, and the long step.
_RECORD_SECONDS = 0.002
_STEP_SECONDS = 0.44
_RECORDS_BEFORE = 50
_VALUES = 1000
# What the size of a record grows by with each, in values, where it grows.
_GROWTH = 256


class _Case(NamedTuple):
  """A stage.

  Attributes:
    name: What it is called in the table.
    capacity: Of its buffer; 0 for AUTOTUNE.
    on_cpu: Whether stage_subgraph_on_cpu is on.
    grows: Whether each record is larger than the one before.
    used: Whether the buffer has been full, and is empty again, when the step begins. Otherwise it fills for the first
      time.
  """

  name: str
  capacity: int
  on_cpu: bool = True
  grows: bool = False
  used: bool = False


_CASES = (
    _Case("stage_subgraph_on_cpu, room for 100,000 records", 100_000),
    _Case("stage_subgraph_on_cpu, records that grow", 100_000, grows=True),
    _Case("stage_subgraph_on_cpu, AUTOTUNE", 0),
    _Case("stage_subgraph_on_cpu, 300 records, used before", 300, used=True),
    _Case("TensorFlow's copies, 300 records, used before", 300, on_cpu=False, used=True),
)


class _Source:
  """A source of records, in Python, that notes when it yields them."""

  def __init__(self, growth: int):
    self._growth = growth
    self._enough = threading.Event()
    self.times: list[float] = []

  def next(self) -> np.ndarray:
    time.sleep(_RECORD_SECONDS)
    self.times.append(time.perf_counter())
    if len(self.times) > _RECORDS_BEFORE:
      self._enough.set()
    return np.full(_VALUES + self._growth * len(self.times), len(self.times), np.float32)

  def wait(self) -> None:
    """Waits until some records were made."""
    if not self._enough.wait(60):
      raise TimeoutError("the stage does not run")

  def wait_for(self, records: int) -> None:
    """Waits until so many records were made, but not for a stage that has stopped."""
    before = -1
    while before < len(self.times) < records:
      before = len(self.times)
      time.sleep(20 * _RECORD_SECONDS)

  def rate(self, begin: float, end: float) -> float:
    """Returns the records per second from one time to another."""
    return sum(begin <= moment < end for moment in self.times) / (end - begin)

  def longest_pause(self, begin: float, end: float) -> float:
    """Returns the longest time between two records, in seconds, from one time to another."""
    moments = [begin, *(moment for moment in self.times if begin <= moment < end), end]
    return max(after - before for before, after in zip(moments, moments[1:], strict=False))


def _long_step(size: int, products: int) -> tf.Tensor:
  """Adds products of matrices, each of which needs the one before; returns a scalar."""
  value = tf.fill([size, size], 1.0 / size)
  factor = tf.get_variable("factor", initializer=tf.fill([size, size], 1.0 / size))
  for _ in range(products):
    value = tf.matmul(value, factor)
  return tf.reduce_sum(value)


def _seconds_of(work) -> float:
  began = time.perf_counter()
  work()
  return time.perf_counter() - began


def _products(device: str, size: int) -> int:
  """Returns how many products take as long as the step should."""
  with tf.Graph().as_default(), tf.device(device):
    result = _long_step(size, 8)
    with tf.Session() as sess:
      sess.run(tf.global_variables_initializer())
      sess.run(result)
      seconds = _seconds_of(lambda: sess.run(result))
  return max(1, min(2000, round(8 * _STEP_SECONDS / seconds)))


def _measure(case: _Case, device: str, size: int, products: int) -> tuple[tuple[str, ...], bool]:
  """Returns the row of a case, and whether the stage went on."""
  source = _Source(_GROWTH if case.grows else 0)
  with tf.Graph().as_default():
    with tf.device("/cpu:0"):
      value = tf.numpy_function(source.next, [], tf.float32)
      value.set_shape([None] if case.grows else [_VALUES])
    capacity = case.capacity or tf.data.AUTOTUNE
    record = tf.staged(value, capacity=capacity)
    with tf.device(device):
      short = tf.reduce_sum(record)
      long = _long_step(size, products)
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.stage_subgraph_on_cpu = case.on_cpu
    with tf.Session(config=config) as sess:
      sess.run(tf.global_variables_initializer())
      sess.run(long)
      with tf.make_prefetch_hook().running(sess):
        if case.capacity:
          source.wait()
        else:
          # The buffer grows with the steps.
          for _ in range(2 * _RECORDS_BEFORE):
            sess.run(short)
        if case.used:
          source.wait_for(case.capacity)
          for _ in range(case.capacity):
            sess.run(short)
        began = time.perf_counter()
        sess.run(long)
        ended = time.perf_counter()
  before = min(_RECORDS_BEFORE, len(source.times) - 1)
  idle, busy = source.rate(source.times[5], source.times[before]), source.rate(began, ended)
  row = (case.name, f"{(ended - began) * 1e3:.0f}", f"{idle:.0f}", f"{busy:.0f}",
         f"{source.longest_pause(began, ended) * 1e3:.0f}")
  return row, busy > 0.5 * idle


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu", help="where the step is computed")
  arguments = parser.parse_args()
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  on_gpu = arguments.device == "gpu"
  device, size = f"/{arguments.device}:0", 8192 if on_gpu else 256
  products = _products(device, size)
  print("| stage | step, ms | records/s beside an idle GPU | records/s during the step | longest pause, ms |\n"
        "|---|---:|---:|---:|---:|", flush=True)
  stalled = []
  for case in _CASES:
    row, went_on = _measure(case, device, size, products)
    print(f"| {' | '.join(row)} |", flush=True)
    # TensorFlow's own copies wait (docs/gpu.md). A buffer of AUTOTUNE may be full. A step on the CPU takes the cores.
    if on_gpu and case.on_cpu and case.capacity and not went_on:
      stalled.append(case.name)
  for name in stalled:
    print(f"\nThe stage stops while the GPU is busy: {name}.", flush=True)
  return 1 if stalled else 0


if __name__ == "__main__":
  sys.exit(main())
