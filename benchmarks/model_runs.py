# SPDX-License-Identifier: Apache-2.0
"""Runs the models of modelzoo/ in several ways that take turns, for the benchmarks of models."""

from __future__ import annotations

import contextlib
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping

import tensorflow as tf

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from modelzoo import data
from modelzoo.base import dataset
from modelzoo.base import model as models
from modelzoo.base.training import Run

# Runs one step.
Step = Callable[[], object]


def write_files(folder: pathlib.Path, rows: int) -> dict[str, pathlib.Path]:
  """Writes files for all models. Returns the folder of each data set."""
  folders = {}
  for name in ("criteo", "taobao"):
    folders[name] = folder / name
    data.write(folders[name], data.Data(dataset=name, rows=rows, eval_rows=1, files=2))
  return folders


def data_set_of(model: models.Model) -> str:
  """Returns the name of the data set that a model reads."""
  return "criteo" if model.format.name == "criteo" else "taobao"


@contextlib.contextmanager
def stepping(run: Run) -> Iterator[Step]:
  """Opens a graph and a session that trains, and runs its stages.

  Args:
    run: The model, its input, and its stages.

  Yields:
    A function that runs one step.
  """
  with tf.Graph().as_default():
    features, labels = run.staging.stage(
        dataset.batches(
            run.input, run.model.format, lambda parsed: run.model.prepare(parsed, run.hyperparameters), training=True))
    built = models.build(run.model, features, labels, run.hyperparameters)
    with tf.Session(config=run.config()) as session:
      session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
      with contextlib.ExitStack() as stack:
        for hook in run.staging.hooks():
          stack.enter_context(hook.running(session))
        yield session.make_callable([built.train_op, built.loss])


def seconds_of_a_step(step: Step, seconds: float) -> float:
  """Returns the mean seconds of the steps that fit into `seconds`."""
  began = now = time.perf_counter()
  steps = 0
  while now - began < seconds or steps < 2:
    step()
    steps += 1
    now = time.perf_counter()
  return (now - began) / steps


def rounds_of(steps: Mapping[str, Step], seconds: float, rounds: int) -> dict[str, list[float]]:
  """Measures several ways, which take turns in an order that alternates between rounds.

  Args:
    steps: The step of each way.
    seconds: How long to measure all of them together. A third of it warms up, also before each measurement, because a
      stage fills its buffer while others are measured.
    rounds: How often each is measured.

  Returns:
    The mean seconds of a step of each way, in each round.
  """
  each = seconds / len(steps) / (rounds + 1)
  for step in steps.values():
    seconds_of_a_step(step, each / 2)
  result: dict[str, list[float]] = {name: [] for name in steps}
  for turn in range(rounds):
    for name, step in list(steps.items())[:: (-1) ** turn]:
      seconds_of_a_step(step, each / 3)
      result[name].append(seconds_of_a_step(step, each * 2 / 3))
  return result


def gain(rounds: Mapping[str, list[float]], name: str, base: str) -> tuple[float, float, float]:
  """Returns how many times as fast one way is as another: the median, the least and the most of the rounds."""
  ratios = [there / here for there, here in zip(rounds[base], rounds[name], strict=True)]
  return statistics.median(ratios), min(ratios), max(ratios)


def markdown(rows: list[tuple[str, ...]], left: int = 1) -> str:
  """Returns a table, whose first row is the heading; all but the first `left` columns are numbers."""
  head, *body = rows
  line = tuple("---" if column < left else "---:" for column in range(len(head)))
  return "\n".join(f"| {' | '.join(row)} |" for row in (head, line, *body))
