# SPDX-License-Identifier: Apache-2.0
"""Trains programs that use other packages without the callback `SmartStage` and with it, and compares to the bit.

A file of programs has a function for each, decorated with `program`, and ends with `main(DISTRIBUTION)`.
"""

import dataclasses
import importlib.metadata
import os
import sys
import traceback
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

import tensorflow_staging

tf.config.threading.set_intra_op_parallelism_threads(1)  # Sums in one order.

# Trains with the callbacks of a list, and returns whatever should be the same with and without one more.
Program = Callable[[list[Any]], Any]


@dataclasses.dataclass(frozen=True)
class _Expected:
  """A program, and what it has ahead of its step: the end of a node's name, or why there is nothing."""
  train: Program
  staged: str | None
  why_not: str | None


_programs: dict[str, _Expected] = {}


def program(staged: str | None = None, why_not: str | None = None) -> Callable[[Program], Program]:
  """Makes a function one of the programs of its file.

  Args:
    staged: A part of the name of a node that runs ahead of its training.
    why_not: A part of why nothing does.
  """

  def add(train: Program) -> Program:
    _programs[train.__name__] = _Expected(train, staged, why_not)
    return train

  return add


def result(model: Any, history: Any, *more: Any) -> list[Any]:
  """Returns what training has made: the history, the weights, and more."""
  return [history.history, model.get_weights(), *more]


def main(*distributions: str) -> None:
  """Runs the programs of the file, or those that the command line names, and prints a line for each.

  Args:
    distributions: The names of the packages that the programs use, as an index calls them.
  """
  versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in distributions)
  failed = False
  for name, expected in _programs.items():
    if sys.argv[1:] and name not in sys.argv[1:]:
      continue
    try:
      outcome = _compare(expected)
    except Exception:  # pylint: disable=broad-except
      traceback.print_exc()
      outcome = "FAIL: an error, above"
    failed |= outcome.startswith("FAIL")
    print(f"{versions} | {name} | {outcome}", flush=True)
  sys.exit(failed)


def _compare(expected: _Expected) -> str:
  plain, again = (_train(expected.train, []) for _ in range(2))
  if different := next(_differences(plain, again), None):
    return f"FAIL: differs from run to run without the callback: {different}"
  callback = tensorflow_staging.SmartStage()
  staged = _train(expected.train, [callback])
  if different := next(_differences(plain, staged), None):
    return f"FAIL: {different}"
  report = tensorflow_staging.explain(callback)
  nodes = [node for step in report.steps for node in step.nodes]
  reasons = [step.why_not for step in report.steps if step.why_not]
  taken = sum(stage.taken for stage in tensorflow_staging.stats(callback))
  if expected.staged is not None and (not taken or not any(expected.staged in node for node in nodes)):
    return f"FAIL: no {expected.staged} is ahead, but {nodes or reasons}"
  if expected.why_not is not None and not any(expected.why_not in reason for reason in reasons):
    return f"FAIL: {expected.why_not} is not among {reasons}"
  return f"PASS: {len(nodes)} nodes ahead, {taken} records" if taken else f"PASS: not staged: {'; '.join(reasons)}"


def _train(train: Program, callbacks: list[Any]) -> Any:
  tf.keras.backend.clear_session()
  tf.keras.utils.set_random_seed(1)
  return train(callbacks)


def _differences(one: Any, other: Any, path: str = "result") -> Iterator[str]:
  """Says where two results differ."""
  if isinstance(one, dict) and isinstance(other, dict):
    if one.keys() != other.keys():
      yield f"{path}: {sorted(one)} and {sorted(other)}"
    for key in one.keys() & other.keys():
      yield from _differences(one[key], other[key], f"{path}[{key!r}]")
  elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
    if len(one) != len(other):
      yield f"{path}: {len(one)} and {len(other)} values"
    for i, (each, its) in enumerate(zip(one, other, strict=False)):
      yield from _differences(each, its, f"{path}[{i}]")
  elif not np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind in "fc"):
    yield f"{path}: {one} and {other}"
