#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what a put and a take cost in two wheels of this fork, for benchmarks/step_of_two_wheels.md.

`.venv/bin/python benchmarks/step_of_two_wheels.py PYTHON > benchmarks/step_of_two_wheels.md` takes about four minutes.
PYTHON is that of an environment with the wheel to compare with. The program starts itself with the argument `measure`
in each environment; such a process runs a block of steps for each line that it reads.
"""

from __future__ import annotations

import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

from lib import report

# Equal sessions differ by several percent (results.md), so there are several pairs of processes.
_PAIRS = 8
_BLOCKS = 16
_STEPS_PER_BLOCK = 1500
_WARM_UP_STEPS = 2000
_SOURCES = ("a constant", "a one-shot iterator", "an initialisable iterator")


def _measure(source: str) -> None:
  import tensorflow as tf

  with tf.Graph().as_default():
    dataset = tf.data.Dataset.range(2**60)
    initializer = tf.no_op()
    if source == _SOURCES[0]:
      record = tf.constant(1)
    elif source == _SOURCES[1]:
      record = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
    else:
      iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
      initializer = iterator.initializer
      record = iterator.get_next()
    staged = tf.staged(record, capacity=4)
    with tf.compat.v1.Session() as session:
      session.run(initializer)
      with tf.make_prefetch_hook().running(session):
        step = session.make_callable(staged)
        for _ in range(_WARM_UP_STEPS):
          step()
        for _ in sys.stdin:
          began = time.perf_counter()
          for _ in range(_STEPS_PER_BLOCK):
            step()
          print((time.perf_counter() - began) / _STEPS_PER_BLOCK * 1e6, flush=True)


class _Process:
  """A stage in an environment, which runs blocks of steps."""

  def __init__(self, python: str, source: str):
    self._process = subprocess.Popen(
        [python, str(pathlib.Path(__file__).resolve()), "measure", source], cwd=tempfile.gettempdir(),
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True)

  def microseconds(self) -> float:
    """Runs a block; returns the microseconds of a step."""
    print(flush=True, file=self._process.stdin)
    return float(self._process.stdout.readline())

  def end(self) -> None:
    self._process.communicate(timeout=60)


def _commit(python: str) -> str:
  """Returns the commit from which the wheel of an environment was built."""
  code = "import tensorflow as tf; print(tf.staging.build_info().commit)"
  return subprocess.run(
      [python, "-c", code], cwd=tempfile.gettempdir(), check=True, text=True, stdout=subprocess.PIPE,
      stderr=subprocess.DEVNULL).stdout.strip()[:12]


def _interval(ratios: list[float]) -> str:
  """Returns the 95 % interval of the median, by 2000 random samples."""
  chance = random.Random(1)
  medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(2000))
  return f"{medians[50]:.3f}–{medians[1949]:.3f}"


def main(python: str) -> None:
  print("# What a step costs in two wheels\n")
  command = "`.venv/bin/python benchmarks/step_of_two_wheels.py PYTHON > benchmarks/step_of_two_wheels.md`"
  print(f"{command}\n\n{report.run()}\n")
  print("| source of `tf.staged` | µs here | µs in the other wheel | ratio | 95 % interval |")
  print("| --- | ---: | ---: | ---: | ---: |")
  for source in _SOURCES:
    blocks: list[list[float]] = [[], []]
    ratios = []
    for _ in range(_PAIRS):
      pair = [_Process(sys.executable, source), _Process(python, source)]
      of_pair: list[list[float]] = [[], []]
      for turn in range(_BLOCKS):
        for i in (0, 1)[:: (-1) ** turn]:
          of_pair[i].append(pair[i].microseconds())
      for i, process in enumerate(pair):
        process.end()
        blocks[i] += of_pair[i]
      ratios.append(statistics.median(here / other for here, other in zip(*of_pair, strict=True)))
    here, other = map(statistics.median, blocks)
    ratio = statistics.median(ratios)
    print(f"| {source} | {here:.1f} | {other:.1f} | {ratio:.3f} | {_interval(ratios)} |", flush=True)
  print(f"""
The other wheel was built from commit {_commit(python)}. A step takes one record of one number from a buffer of
capacity 4; the producer never has anything else to do. Each source has {_PAIRS} pairs of processes, one of each wheel.
The two take turns: {_BLOCKS} blocks of {_STEPS_PER_BLOCK} steps each, after {_WARM_UP_STEPS} steps that are not
counted. The ratio of a pair is the median of the ratios of neighbouring blocks; the table has the median of the
pairs.""")


if __name__ == "__main__":
  if sys.argv[1:2] == ["measure"]:
    _measure(sys.argv[2])
  else:
    main(sys.argv[1])
