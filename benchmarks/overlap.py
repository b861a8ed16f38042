#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how much of the time to prepare a record a stage hides, for benchmarks/overlap.md.

`.venv/bin/python benchmarks/overlap.py > benchmarks/overlap.md` takes about half a minute.
"""

from __future__ import annotations

import contextlib
import statistics

import tensorflow as tf
from lib import blocks
from lib import plain_command_line
from lib import report
from lib import timed_work
from lib import ways

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


def _slow(value: tf.Tensor) -> tf.Tensor:
  """Returns `value` after the time that a preparation or a step takes, without keeping a core busy."""
  return timed_work.slow(value, lambda _: _SECONDS * 1e3)


def _dataset() -> tf.data.Dataset:
  return tf.data.Dataset.from_tensors(1).repeat().map(lambda value: (_slow(value),))


_SOURCE = ways.Source(lambda: [_slow(tf.constant(1))], _dataset)


def _step(record: ways.Record) -> tf.Operation:
  return _slow(record[0]).op


def _measure() -> dict[str, list[float]]:
  """Returns the seconds of a step in each round."""
  with contextlib.ExitStack() as stack:
    steps = {name: stack.enter_context(ways.step_of(way, _SOURCE, _step)) for name, way in _WAYS.items()}
    preparation = ways.step_of(ways.no_stage, _SOURCE, lambda record: record[0].op)
    step = ways.step_of(ways.no_stage, _SOURCE._replace(record=lambda: [tf.constant(1)]), _step)
    steps |= {_PREPARATION: stack.enter_context(preparation), _STEP: stack.enter_context(step)}
    costs = blocks.of_steps(steps, _ROUNDS, _WARM_UP_STEPS, _MEASURED_STEPS)
    return {name: [cost.seconds for cost in values] for name, values in costs.items()}


def main() -> None:
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  rounds = _measure()
  medians = {name: statistics.median(values) for name, values in rounds.items()}
  limit = max(medians[_PREPARATION], medians[_STEP])
  table = [("way", "steps/s", "ms per step", report.INTERVAL, "ratio to the limit", "ratio to the sleep")]
  for name, seconds in medians.items():
    table.append((
        name,
        f"{1 / seconds:.1f}",
        f"{seconds * 1e3:.2f}",
        report.milliseconds_interval(rounds[name]),
        f"{seconds / limit:.3f}",
        f"{seconds / _SECONDS:.3f}",
    ))
  milliseconds = f"{_SECONDS * 1e3:.0f} ms"
  print(f"""# How much of the preparation a stage hides

{report.command("overlap")}

{report.markdown(table)}

The preparation of a record sleeps for {milliseconds}, and so does a step, each in a `tf.numpy_function`, so that
they do not compete for a core. The limit is the longer of the two, measured alone; it exceeds {milliseconds} by the
delay of the sleep and the call of the Python function. `tf.staged` should take at most {_TARGET} times the limit.
For `tf.data`, the dataset's `map` prepares the record. Every buffer holds one record. All ways are open in one
process and take turns; the numbers are medians of {_ROUNDS} rounds of {_MEASURED_STEPS} steps each, after
{_WARM_UP_STEPS} steps that are not counted, with the confidence interval of the median.""")


if __name__ == "__main__":
  plain_command_line.check(__doc__)
  main()
