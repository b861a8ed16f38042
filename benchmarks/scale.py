#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures stages of 1 to 8 producers, 1 to 64 records and up to 64 MB a record, for benchmarks/scale.md.

`.venv/bin/python benchmarks/scale.py > benchmarks/scale.md` takes about two minutes; `--quick` tries whether it works.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import time
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple

import tensorflow as tf
from lib import blocks
from lib import parts_command_line
from lib import report
from lib import timed_work
from lib import ways

_SECONDS = 10
_ROUNDS = 7
_QUICK_SECONDS = 0.5

_PRODUCERS = (1, 2, 4, 8)
_RECORD_MILLISECONDS = 8
_COMPUTING = {"waits": False, "computes": True}

_CAPACITIES = (1, 2, 4, 8, 16, 32, 64)
# A record takes 0 or 8 ms, by turns of 16, and a step 4.4 ms.
_TURN = 16
_STEP_MILLISECONDS = 4.4

_MEGABYTE = 2**20
_RECORD_BYTES = (_MEGABYTE // 16, _MEGABYTE, 16 * _MEGABYTE, 64 * _MEGABYTE)
_MEMORY_CAPACITIES = (1, 8, 64)
_MOST_SECONDS = 60
_MEMORY_STEPS = 20


def _numbers() -> tf.Tensor:
  return tf.compat.v1.data.make_one_shot_iterator(timed_work.counter()).get_next()


def _staged(threads: int, capacity: int) -> ways.Way:
  return lambda source, _: (
      tf.staged(source.record(), num_threads=threads, capacity=capacity), tf.make_prefetch_hook().running)


def _source(milliseconds: Callable[[int], float], computes: bool = False) -> ways.Source:
  return ways.Source(lambda: [timed_work.slow(_numbers(), milliseconds, computes)], timed_work.counter)


def _rounds(steps: dict[str, blocks.Step], quick: bool) -> dict[str, list[blocks.Cost]]:
  return blocks.in_turns(steps, _QUICK_SECONDS if quick else _SECONDS, 1 if quick else _ROUNDS)


def _producers(kind: str, quick: bool) -> dict[str, list[blocks.Cost]]:
  """Returns the costs of a step that only takes, by the number of producers."""
  source = _source(lambda number: _RECORD_MILLISECONDS, _COMPUTING[kind])
  with contextlib.ExitStack() as stack:
    return _rounds({
        str(threads): stack.enter_context(ways.step_of(_staged(threads, threads), source, ways.computed))
        for threads in _PRODUCERS
    }, quick)


def _capacity(quick: bool) -> dict[str, list[blocks.Cost]]:
  """Returns the costs of a step that takes half the time of the slow records, by the capacity."""
  source = _source(lambda number: 8 if number // _TURN % 2 else 0)
  train = lambda record: timed_work.slow(record[0], lambda number: _STEP_MILLISECONDS).op
  with contextlib.ExitStack() as stack:
    return _rounds({
        str(capacity): stack.enter_context(ways.step_of(_staged(1, capacity), source, train))
        for capacity in _CAPACITIES
    }, quick)


class Memory(NamedTuple):
  """The memory of a stage in bytes, and what its steps take."""

  # What the buffer says that it holds.
  buffered: int
  # By how much the memory of the process has grown, when the buffer was full, and after some steps.
  full: int
  after_steps: int
  # The means of the steps, whose records are filled with a number, and not read.
  seconds: float
  cpu_seconds: float


def _memory(size: int, capacity: int) -> Memory:
  """Measures a stage in this process, which must be a fresh one."""
  with tf.Graph().as_default(), contextlib.ExitStack() as stack:
    filled = tf.fill([size // 4], tf.cast(_numbers(), tf.float32))
    step = ways.computed([tf.staged(filled, capacity=capacity)])
    session = stack.enter_context(tf.compat.v1.Session())
    session.run(tf.no_op())
    before = _resident_bytes()
    stack.enter_context(tf.make_prefetch_hook().running(session))
    buffered = _fill(session, capacity)
    full = _resident_bytes() - before
    run = session.make_callable(step)
    costs = [blocks.cost(run, 0) for _ in range(_MEMORY_STEPS)]
    return Memory(buffered, full, _resident_bytes() - before, *blocks.median(costs))


def _fill(session: tf.compat.v1.Session, capacity: int) -> int:
  """Waits until the buffer is full and the producer waits; returns the bytes that the buffer holds."""
  end = time.monotonic() + _MOST_SECONDS
  while time.monotonic() < end:
    found, = tf.staging.stats(session)
    if found.records == capacity and found.waiting_puts:
      return found.bytes
    time.sleep(0.001)
  raise TimeoutError(f"the buffer holds {found.records} records after {_MOST_SECONDS} s; it should hold {capacity}")


def _resident_bytes() -> int:
  return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _costs(rounds: blocks.Rounds) -> dict[str, blocks.Cost]:
  return {name: blocks.median([blocks.Cost(*cost) for cost in values]) for name, values in rounds.items()}


def _producers_rows(kind: str, rounds: blocks.Rounds) -> Iterator[tuple[str, ...]]:
  costs = _costs(rounds)
  label = kind
  for name, cost in costs.items():
    ratio = blocks.ratio(rounds, name, "1")
    ideal = _RECORD_MILLISECONDS / 1e3 / (min(int(name), os.cpu_count()) if _COMPUTING[kind] else int(name))
    yield (label, name, f"{1 / cost.seconds:.0f}", report.milliseconds(cost.seconds),
           report.milliseconds(cost.cpu_seconds), f"{ratio.median:.2f}", report.interval(ratio),
           f"{cost.seconds / ideal:.2f}")
    label = ""


def _capacity_rows(rounds: blocks.Rounds) -> Iterator[tuple[str, ...]]:
  for name, cost in _costs(rounds).items():
    ratio = blocks.ratio(rounds, name, "1")
    yield (name, report.milliseconds(cost.seconds), report.milliseconds(cost.cpu_seconds), f"{ratio.median:.2f}",
           report.interval(ratio), f"{cost.seconds / (_STEP_MILLISECONDS / 1e3):.2f}")


def _megabytes(count: int) -> str:
  return f"{count / _MEGABYTE:.3g}" if count < _MEGABYTE else f"{count / _MEGABYTE:.0f}"


def _memory_row(size: int, capacity: int, memory: Memory) -> tuple[str, ...]:
  # A producer holds one record, for which it has no room.
  held = size * (capacity + 1)
  return (_megabytes(size), str(capacity), _megabytes(size * capacity), _megabytes(memory.buffered),
          _megabytes(memory.full), _megabytes(memory.after_steps), f"{memory.full / held:.2f}",
          report.milliseconds(memory.seconds), report.milliseconds(memory.cpu_seconds))


def _write(results: dict[str, Any]) -> str:
  producers = [("record", "producers", "records/s", "ms a record", "CPU ms a record", "times as fast as one",
                report.INTERVAL, "time / limit")]
  for kind in _COMPUTING:
    if kind in results:
      producers += _producers_rows(kind, results[kind])
  capacities = [("capacity", "ms per step", "CPU ms per step", "times as fast as one", report.INTERVAL, "time / limit")]
  capacities += _capacity_rows(results["capacity"])
  memory = [("MB a record", "capacity", "capacity × record, MB", "the buffer's own count, MB", "memory when full, MB",
             "memory after steps, MB", "full / (capacity + 1) records", "ms per step", "CPU ms per step")]
  for name, size, capacity in _memory_parts():
    if name in results:
      memory.append(_memory_row(size, capacity, Memory(*results[name])))
  return f"""# Stages of many producers, many records and large records

{report.command("scale")}

## Producers

{report.markdown(producers, left=1)}

A record takes {_RECORD_MILLISECONDS} ms in a `tf.numpy_function`: asleep, or computing hyperbolic tangents in
one thread, measured in CPU time. The step only takes it. The buffer holds as many records as there are producers. The
limit is
{_RECORD_MILLISECONDS} ms divided by the producers, or by the cores where a record computes and there are more
producers.

## Capacity

{report.markdown(capacities, left=0)}

A record takes 0 ms or 8 ms, by turns of {_TURN} records, and a step {_STEP_MILLISECONDS} ms, all asleep; one producer.
The limit is the time of a step: the records take less on average, but only a buffer that holds about half a turn can
hide the slow ones.

## Memory

{report.markdown(memory, left=0)}

A record is filled with a number, and the step takes it and does not read it. One producer, which holds one record more
while it waits for room. Memory is by how much the resident pages of a fresh process had grown; for records of less
than a MB, they include what the stage and its threads need. MB are 2²⁰ bytes.

The stages of a table of *producers* and *capacity* are open in one process and take turns; the numbers are medians of
{_ROUNDS} rounds, and of {_MEMORY_STEPS} blocks of 3 steps for *memory*. *Times as fast* is the median of the ratios of
the rounds, with its confidence interval beside it."""


def _memory_parts() -> Iterator[tuple[str, int, int]]:
  for size in _RECORD_BYTES:
    for capacity in _MEMORY_CAPACITIES:
      yield f"memory_{size}_{capacity}", size, capacity


if __name__ == "__main__":
  parts_command_line.main(
      __file__, __doc__, {
          **{kind: lambda quick, kind=kind: _producers(kind, quick) for kind in _COMPUTING},
          "capacity": _capacity,
          **{
              name: lambda quick, size=size, capacity=capacity: _memory(size, capacity)
              for name, size, capacity in _memory_parts()
          },
      }, _write, quick=("waits", "capacity", f"memory_{_MEGABYTE}_8"))
