#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what benchmarks/overlap.md tells: how close a stage comes to hiding the preparation entirely.

`.venv/bin/python benchmarks/overlap.py > benchmarks/overlap.md` takes about half a minute.
"""

from __future__ import annotations

import contextlib
import os
import platform
import statistics
import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf
import ways

_ROUNDS = 7
_WARM_UP_STEPS = 5
_MEASURED_STEPS = 50
_SECONDS = 0.010
_TARGET = 1.03

_WAYS: dict[str, ways.Way] = {
    "`tf.staged`": ways.staged,
    "`tf.data`, `prefetch`": ways.data_prefetch,
    "no stage": ways.no_stage,
}
_PREPARATION = "the preparation alone"
_STEP = "the step alone"


def _sleep(value: np.ndarray) -> np.ndarray:
  time.sleep(_SECONDS)
  return value


def _slow(value: tf.Tensor) -> tf.Tensor:
  """`value` after the preparation's, or the step's, time; no core is busy meanwhile."""
  return tf.ensure_shape(tf.numpy_function(_sleep, [value], value.dtype), value.shape)


def _dataset() -> tf.data.Dataset:
  return tf.data.Dataset.from_tensors(1.0).repeat().map(lambda value: (_slow(value),))


_SOURCE = ways.Source(lambda: [_slow(tf.constant(1.0))], _dataset)


def _step(record: ways.Record) -> tf.Operation:
  return _slow(record[0]).op


def _seconds(step: Callable[[], None]) -> float:
  """Of one step."""
  for _ in range(_WARM_UP_STEPS):
    step()
  began = time.perf_counter()
  for _ in range(_MEASURED_STEPS):
    step()
  return (time.perf_counter() - began) / _MEASURED_STEPS


def _measure() -> dict[str, list[float]]:
  """The seconds of a step in each round; the ways take turns, first forwards, then backwards."""
  with contextlib.ExitStack() as stack:
    steps = {name: stack.enter_context(ways.step_of(way, _SOURCE, _step)) for name, way in _WAYS.items()}
    preparation = ways.step_of(ways.no_stage, _SOURCE, lambda record: record[0].op)
    step = ways.step_of(ways.no_stage, _SOURCE._replace(record=lambda: [tf.constant(1.0)]), _step)
    steps |= {_PREPARATION: stack.enter_context(preparation), _STEP: stack.enter_context(step)}
    rounds: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(_ROUNDS):
      for name, run in list(steps.items())[:: (-1) ** turn]:
        rounds[name].append(_seconds(run))
    return rounds


def main() -> None:
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  rounds = _measure()
  medians = {name: statistics.median(values) for name, values in rounds.items()}
  limit = max(medians[_PREPARATION], medians[_STEP])
  table = [
      ("way", "steps/s", "ms a step", "least–most", "to the limit", "to the sleep"),
      ("---", "---:", "---:", "---:", "---:", "---:"),
  ]
  for name, seconds in medians.items():
    table.append((
        name,
        f"{1 / seconds:.1f}",
        f"{seconds * 1e3:.2f}",
        f"{min(rounds[name]) * 1e3:.2f}–{max(rounds[name]) * 1e3:.2f}",
        f"{seconds / limit:.3f}",
        f"{seconds / _SECONDS:.3f}",
    ))
  milliseconds = f"{_SECONDS * 1e3:.0f} ms"
  print("# How much of the preparation a stage hides\n")
  print(
      "`.venv/bin/python benchmarks/overlap.py > benchmarks/overlap.md`, one run on"
      f" {os.cpu_count()} cores, {platform.system()} {platform.machine()}.\n")
  print("\n".join(f"| {' | '.join(row)} |" for row in table))
  print(f"""
Preparing a record sleeps {milliseconds}, and so does a step, each in a `tf.numpy_function`: no core is contended for.
The limit is the longer of the two alone, as measured; what they take above {milliseconds} is the sleep's own delay and
the Python function's call. The target for `tf.staged` is at most {_TARGET} of the limit. For `tf.data` the preparation
is in the dataset's `map`. Every buffer holds one record. All are open in one process and take turns: medians of
{_ROUNDS} rounds of {_MEASURED_STEPS} steps each, after {_WARM_UP_STEPS} that are not counted.""")


if __name__ == "__main__":
  main()
