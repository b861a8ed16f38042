#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the cost of a stage per step with other ways to run ahead, for benchmarks/stage_overhead.md.

`.venv/bin/python benchmarks/stage_overhead.py > benchmarks/stage_overhead.md` takes about a minute and a half.
"""

from __future__ import annotations

import contextlib
import statistics

import numpy as np
import tensorflow as tf
from lib import blocks
from lib import plain_command_line
from lib import report
from lib import ways

_CAPACITIES = (1, 8)
_ROUNDS = 41
_WARM_UP_STEPS = 50
_MEASURED_STEPS = 400

_RECORDS = {
    "one scalar": (1, ()),
    "40 tensors of 16 floats": (40, (16,)),
    "400 tensors of 16 floats": (400, (16,)),
    "one tensor of 64 MB": (1, (16_000_000,)),
}
_STAGED = "`tf.staged`"
_NO_STAGE = "no stage"
_WAYS: dict[str, ways.Way] = {
    _STAGED: ways.staged,
    "`StagingArea`, a Python thread": ways.staging_area,
    "`FIFOQueue`, `QueueRunner`": ways.fifo_queue,
    "`tf.data`, `prefetch`": ways.data_prefetch,
    _NO_STAGE: ways.no_stage,
}


def _constants(count: int, shape: tuple[int, ...]) -> ways.Source:
  """Returns a source whose records are constants of the graph; they are in memory and are passed by reference."""
  values = [np.full(shape, i, np.float32) for i in range(count)]

  def record() -> ways.Record:
    return [tf.constant(value) for value in values]

  return ways.Source(record, lambda: tf.data.Dataset.from_tensors(tuple(record())).repeat())


def _costs(source: ways.Source, capacity: int) -> blocks.Rounds:
  with contextlib.ExitStack() as stack:
    steps = {
        name: stack.enter_context(ways.step_of(way, source, ways.computed, capacity)) for name, way in _WAYS.items()
    }
    return blocks.of_steps(steps, _ROUNDS, _WARM_UP_STEPS, _MEASURED_STEPS)


def _cells(rounds: blocks.Rounds) -> dict[str, tuple[str, ...]]:
  """Returns the table's cells for each way, for one kind of record and one capacity."""
  walls = {name: statistics.median(cost.seconds for cost in values) for name, values in rounds.items()}
  best_other = min(wall for name, wall in walls.items() if name not in (_STAGED, _NO_STAGE))
  result = {}
  for name, values in rounds.items():
    step = blocks.interval([cost.seconds * 1e6 for cost in values])
    result[name] = (
        f"{walls[name] * 1e6:.0f}",
        report.interval(step, digits=0),
        f"{walls[name] / best_other:.2f}",
        f"{statistics.median(cost.cpu_seconds for cost in values) * 1e6:.0f}",
    )
  return result


def main() -> None:
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  columns = ("µs per step", report.INTERVAL, "ratio to the best other", "CPU µs")
  table: list[tuple[str, ...]] = [
      ("record", "way", *(f"{column}, {capacity}" for capacity in _CAPACITIES for column in columns))]
  for title, (count, shape) in _RECORDS.items():
    source = _constants(count, shape)
    by_capacity = [_cells(_costs(source, capacity)) for capacity in _CAPACITIES]
    for name in _WAYS:
      table.append((title, name, *(cell for found in by_capacity for cell in found[name])))
      title = ""
  capacities = " and ".join(str(capacity) for capacity in _CAPACITIES)
  print(f"""# The cost of a stage per step

{report.command("stage_overhead")}

{report.markdown(table, left=2)}

The table shows the cost of the put, the take and the runner, for records that cost nothing to compute. The source
is one `tf.constant` per component, passed by reference; for `tf.data` it is `Dataset.from_tensors` of the same
constants, repeated. A step is one call of what `session.make_callable` returns for an `IdentityN` of all
components; without a stage, the `IdentityN` uses the constants directly. The number after each column's name is the
capacity of the buffer: {capacities}. Each way has its own graph and session with the default configuration. All are
open in one process and take turns; the numbers are medians of {_ROUNDS} rounds of {_MEASURED_STEPS} steps each,
after {_WARM_UP_STEPS} steps that are not counted. The interval is the confidence interval of the median.
"Ratio to the best other" compares with the fastest of the other three ways that run ahead. "CPU µs" is the time of
all threads, including the producer; where it equals the time of the step, the kernel ran all threads on one core. A
producer without work is the worst case: each step waits until one thread has woken another, and there is no work to
hide.""")


if __name__ == "__main__":
  plain_command_line.check(__doc__)
  main()
