#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures steps of 1 to 8 replicas of a MirroredStrategy on fake GPUs, for benchmarks/replicas.md.

`.venv/bin/python benchmarks/replicas.py > benchmarks/replicas.md` takes about six minutes; `--quick` tries whether it
works.
"""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple

os.environ.setdefault("TF_API_VERSION", "2")

import tensorflow as tf
from lib import blocks
from lib import parts_command_line
from lib import report

_FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(_FOLDER.parent / "tensorflow_staging/python/testing"))
import compiled_library  # noqa: E402  # pylint: disable=g-import-not-at-top,wrong-import-position
import fake_gpus  # noqa: E402  # pylint: disable=g-import-not-at-top,wrong-import-position

_SECONDS = 20
_ROUNDS = 9
_QUICK_SECONDS = 0.5
_REPLICAS = (1, 2, 4, 8)
# What one replica gets of an element.
_BYTES = 256 * 1024
# Records ahead of the step, as many as tf.data and `tf.distribute` hold together.
_CAPACITY = 4
_IN_STEP, _IN_MAP, _STAGED = "prepared in the step", "prepared in `dataset.map`", "staged"
_WAYS = (_IN_STEP, _IN_MAP, _STAGED)


class Case(NamedTuple):
  """What a replica does in a step, in milliseconds."""

  prepares: float
  computes: bool
  trains: float


_CASES = {
    "only copies": Case(0, False, 0),
    "waits 4 ms for its input and trains 4 ms": Case(4, False, 4),
    "prepares for 2 ms of a core and trains 8 ms": Case(2, True, 8),
}


class _Work:
  """Passes tensors on after some time; that of several replicas goes on at the same time."""

  def __init__(self):
    self._ops = compiled_library.load(_FOLDER / "lib/timed_ops.cc", tf.load_op_library)

  def after(self, value: tf.Tensor, milliseconds: float, computes: bool = False) -> tf.Tensor:
    """Returns the tensor after so much time, waiting or computing."""
    if not milliseconds:
      return value
    op = self._ops.pass_on_after_computing if computes else self._ops.pass_on_after_waiting
    return op(value, micros=round(milliseconds * 1e3))


def _step(case: Case, way: str, strategy: tf.distribute.Strategy, work: _Work) -> blocks.Step:
  """Returns a step in which each replica adds what it reads to a variable on its GPU."""
  # What nothing is prepared for has no stage, so there is an addition at least.
  prepare = lambda element: work.after(element + 1.0, case.prepares, case.computes)
  rows = tf.data.Dataset.counter().map(lambda number: tf.fill([_BYTES // 4], tf.cast(number, tf.float32)))
  if way == _IN_MAP:
    rows = rows.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).prefetch(_CAPACITY)
  on_each = dict(synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM)
  with strategy.scope():
    total = tf.Variable(tf.zeros([_BYTES // 4]), trainable=False, **on_each)
    steps = tf.Variable(0.0, trainable=False, **on_each)

  def train(element: tf.Tensor) -> None:
    total.assign_add(element if way == _IN_MAP else prepare(element))
    # Depends on a variable, so it is in the step.
    steps.assign(work.after(steps.read_value(), case.trains) + 1.0)

  step = tf.function(lambda iterator: strategy.run(train, args=(next(iterator),)))
  if way == _STAGED:
    step = tf.staging.ahead(step, _CAPACITY)
  iterator = iter(strategy.distribute_datasets_from_function(lambda _: rows))
  step(iterator)
  if way == _STAGED and step.why_not is not None:
    raise RuntimeError(f"nothing is staged: {step.why_not}")
  return lambda: step(iterator)


def _part(replicas: int) -> Callable[[bool], Any]:

  def measure(quick: bool) -> dict[str, dict[str, list[blocks.Cost]]]:
    fake_gpus.load(replicas)
    work = _Work()
    strategy = tf.distribute.MirroredStrategy([f"/gpu:{i}" for i in range(replicas)])
    result = {}
    for name, case in _CASES.items():
      steps = {way: _step(case, way, strategy, work) for way in _WAYS}
      result[name] = blocks.in_turns(steps, _QUICK_SECONDS if quick else _SECONDS, 1 if quick else _ROUNDS)
      del steps
    return result

  return measure


def _rows(name: str, results: dict[str, Any]) -> Iterator[tuple[str, ...]]:
  yield ("replicas", *(f"{way}, ms" for way in _WAYS), *(f"CPU ms, {way}" for way in _WAYS),
         "staged / map", report.INTERVAL, "staged / step", report.INTERVAL)
  for replicas, parts in results.items():
    rounds = {way: [blocks.Cost(*cost) for cost in costs] for way, costs in parts[name].items()}
    medians = {way: blocks.median(costs) for way, costs in rounds.items()}
    beside_map, beside_step = (blocks.ratio(rounds, _STAGED, other) for other in (_IN_MAP, _IN_STEP))
    yield (replicas, *(report.milliseconds(medians[way].seconds) for way in _WAYS),
           *(report.milliseconds(medians[way].cpu_seconds) for way in _WAYS),
           f"{beside_map.median:.2f}", report.interval(beside_map),
           f"{beside_step.median:.2f}", report.interval(beside_step))


def _page(results: dict[str, Any]) -> str:
  tables = "\n\n".join(f"## Each replica {name}\n\n{report.markdown(list(_rows(name, results)))}" for name in _CASES)
  return f"""# Steps of several replicas

{report.command("replicas")}

{tables}

A replica of a `MirroredStrategy` gets {_BYTES // 1024} KiB of an element, prepares it, and adds it to a variable on its
GPU. The GPUs are fake: they have memory and copies, and what they compute runs on the cores of the host. So the table
shows what the host does for each replica, and not how fast a GPU is. A ratio says how many times as fast the staged
step is; "map" is the dataset that prepares with as many calls as tf.data chooses, read by TensorFlow's own iterator for
several devices, which fetches each replica's element to its GPU ahead of the step. The ways are open in one process and
take turns, in {_ROUNDS} rounds.
"""


if __name__ == "__main__":
  parts_command_line.main(
      __file__, __doc__, {str(replicas): _part(replicas) for replicas in _REPLICAS}, _page, quick=["2"])
