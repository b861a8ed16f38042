#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how near to its limit a model of modelzoo/ trains on a GPU, or a CPU, for benchmarks/gpu.md.

`.venv/bin/python benchmarks/gpu_models.py` prints a row of Markdown as soon as it is known; `--quick` tries whether it
works. `--only 'dlrm:best:*'` measures the cases of that name; `--list` prints all names. A model takes `--budget`
seconds at most: by default what the environment variable GPU_BENCHMARK_SECONDS says for all, or a minute each.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import gc
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from collections.abc import Iterator
from typing import NamedTuple

import tensorflow as tf
from lib import blocks
from lib import device_runs
from lib import model_runs
from lib import report

from modelzoo.base import model as models
from modelzoo.base.dataset import Input
from modelzoo.base.staging import Staging
from modelzoo.base.training import Run

# In this order, for a machine that may go away. The goals are the gains of DeepRec's documents with
# stage_subgraph_on_cpu, measured on an A100.
_GOALS = {"dlrm": 2.05, "deepfm": 1.25, "dssm": 1.10, "din": 1.20, "dien": 1.005}
_PIPELINES = ("best", "deeprec", "plain")
_ROWS = 40_000
_BATCH = 2048
# What tf.data reads at the same time.
_FILES = 16
# A block has so many steps for each record that the buffer holds, at least.
_STEPS_PER_RECORD = 10
_SOURCE_THREADS = (1, 8)
_SECONDS = 60
# What is left of the budget for the end of the process.
_END_SECONDS = 4

Open = Callable[[Run], contextlib.AbstractContextManager[blocks.Step]]


class Effort(NamedTuple):
  """How long a case is measured, and with which files."""

  warm_up_seconds: float
  # Until a stage that chooses its settings has chosen.
  settling_seconds: float
  seconds: float
  rows: int
  batch: int


_FULL = Effort(warm_up_seconds=1.0, settling_seconds=2.0, seconds=0.8, rows=_ROWS, batch=_BATCH)
_QUICK = Effort(warm_up_seconds=0.05, settling_seconds=0.05, seconds=0.05, rows=640, batch=16)


class Way(NamedTuple):
  """A way to train, or a part of training alone."""

  name: str
  title: str
  open: Open
  # The stage, and how many records its buffer holds.
  staging: dict = {}
  capacity: int = 0


def _stage(name: str, title: str, kind: str, threads: int, on_cpu: bool = False) -> Way:
  """Returns the way with a stage. 0 producers let it choose, and its capacity, too."""
  capacity = max(4, threads) if threads else 0
  staging = dict(staging=kind, threads=threads, capacity=capacity, stage_on_cpu=on_cpu)
  return Way(name, title, model_runs.stepping, staging, capacity or 8)


_STEP = Way("step", "the step alone", device_runs.step_alone)
_SOURCES = tuple(
    Way(f"source_{threads}", f"the source alone, {threads} thread{'s' * (threads > 1)}",
        lambda run, threads=threads: device_runs.source_alone(run, threads)) for threads in _SOURCE_THREADS)
_NONE = Way("none", "no stage", model_runs.stepping)
_TO_DEVICE = Way("prefetch_to_device", "`prefetch_to_device`", device_runs.prefetched_to_device, capacity=2)
_AREA = Way("staging_area", "`StagingArea`", device_runs.staging_area, capacity=4)


def _ways(pipeline: str, on_gpu: bool) -> list[Way]:
  """Returns the ways of a pipeline; what matters most comes first."""
  on_cpu = ", stage_subgraph_on_cpu" if on_gpu else ""
  smart = [
      _stage(f"smart_{threads or 'auto'}", f"SmartStage{on_cpu}, {what}", "smart", threads, on_gpu)
      for threads, what in ((1, "1 producer"), (4, "4 producers"), (8, "8 producers"), (0, "AUTOTUNE"))
  ]
  # tf.data cannot copy strings to a GPU.
  peers = [_TO_DEVICE, _AREA] if pipeline == "best" else [_AREA]
  others = [_stage("staged_1", f"`tf.staged`{on_cpu}, 1 producer", "staged", 1, on_cpu=on_gpu)]
  if on_gpu:
    others += [
        _stage(f"smart_on_gpu_{threads}", f"SmartStage, {what}", "smart", threads)
        for threads, what in ((1, "1 producer"), (4, "4 producers"))
    ]
  return [*_SOURCES, _NONE, *smart, *peers, *others]


class Case(NamedTuple):
  """A way of a model and a pipeline. The step alone has none of these pipelines, as it reads nothing."""

  model: str
  pipeline: str
  way: Way

  @property
  def name(self) -> str:
    """What `--only` chooses it by."""
    return f"{self.model}:{self.pipeline}:{self.way.name}"


def _cases(model: str, pipelines: list[str], on_gpu: bool) -> Iterator[Case]:
  yield Case(model, "any", _STEP)
  for pipeline in pipelines:
    for way in _ways(pipeline, on_gpu):
      yield Case(model, pipeline, way)


class Result(NamedTuple):
  """What was measured of a case."""

  cost: blocks.Cost
  # From opening the session to the end of its first step.
  first_seconds: float


def _measure(case: Case, data: pathlib.Path, on_gpu: bool, effort: Effort) -> Result:
  model = models.load(case.model)
  pipeline = "best" if case.way is _STEP else case.pipeline
  files = Input(data=str(data), batch_size=effort.batch, tf_data=pipeline)
  run = Run(model, model.hyperparameters(), files, staging=Staging(gpu=on_gpu, **case.way.staging))
  began = time.perf_counter()
  try:
    with case.way.open(run) as step:
      step()
      first = time.perf_counter() - began
      chooses = case.way.staging.get("threads") == 0
      least = 1 if effort is _QUICK else _STEPS_PER_RECORD * max(1, case.way.capacity)
      blocks.cost(step, effort.settling_seconds if chooses else effort.warm_up_seconds, least // 2)
      return Result(blocks.cost(step, effort.seconds, least), first)
  finally:
    # The graph of a session that was closed has cycles; its memory must not be freed while the next is measured.
    gc.collect()


_HEAD = ("model", "tf.data", "way", "steps/s", "ms a step", "CPU ms a step", "limit / time", "times no stage", "goal",
         "first step, s")
_LEFT = 3


class Table:
  """Prints each row when it is known, with what it means beside the rows before."""

  def __init__(self, on_gpu: bool):
    """Prints the heading."""
    self._on_gpu = on_gpu
    self._costs: dict[str, blocks.Cost] = {}
    self._print(report.markdown([_HEAD], left=_LEFT))

  def add(self, case: Case, result: Result) -> None:
    """Prints the row of a case."""
    self._costs[case.name] = result.cost
    is_alone = case.way is _STEP or case.way in _SOURCES
    limit = None if is_alone else self._limit(case)
    base = None if is_alone else self._costs.get(case._replace(way=_NONE).name)
    goal = _GOALS[case.model] if self._on_gpu and case.way.name.startswith("smart_") and case.pipeline == "best" else ""
    self._row(
        case, f"{1 / result.cost.seconds:.1f}", report.milliseconds(result.cost.seconds),
        report.milliseconds(result.cost.cpu_seconds), f"{limit / result.cost.seconds:.2f}" if limit else "",
        f"{base.seconds / result.cost.seconds:.2f}" if base else "", f"{goal:.4g}" if goal else "",
        f"{result.first_seconds:.1f}")

  def fail(self, case: Case, error: Exception) -> None:
    """Prints the row of a case that failed."""
    text = " ".join(f"{type(error).__name__}: {error}".split()).replace("|", "/")
    self._row(case, f"failed: {text[:200]}", *[""] * (len(_HEAD) - _LEFT - 1))

  def _limit(self, case: Case) -> float | None:
    """Returns the seconds of a step that nothing holds up, if source and step have been measured.

    A step takes no less than source or step alone, nor than the CPU time of both divided by the cores.
    """
    step = self._costs.get(Case(case.model, "any", _STEP).name)
    sources = [self._costs.get(case._replace(way=way).name) for way in _SOURCES]
    known = [cost for cost in sources if cost]
    if not step or not known:
      return None
    source = min(known, key=lambda cost: cost.seconds)
    return max(source.seconds, step.seconds, report.limit(source, step, os.cpu_count()))

  def _row(self, case: Case, *columns: str) -> None:
    pipeline = "" if case.way is _STEP else case.pipeline
    self._print(f"| {' | '.join((models.load(case.model).name, pipeline, case.way.title, *columns))} |")

  @staticmethod
  def _print(text: str) -> None:
    print(text, flush=True)


def _chosen(arguments: argparse.Namespace) -> dict[str, list[Case]]:
  """Returns the cases of each model that the command line asks for."""
  chosen = {}
  for model in arguments.models:
    cases = list(_cases(model, arguments.tf_data, arguments.device == "gpu"))
    if arguments.only:
      cases = [case for case in cases if any(fnmatch.fnmatchcase(case.name, pattern) for pattern in arguments.only)]
    if cases:
      chosen[model] = cases
  return chosen


def _run(chosen: dict[str, list[Case]], on_gpu: bool, budget: float, effort: Effort) -> None:
  table, late = Table(on_gpu), []
  # The first model's budget contains the files.
  deadline = time.monotonic() + budget - _END_SECONDS
  with tempfile.TemporaryDirectory() as folder:
    folders = {}
    for model, cases in chosen.items():
      data_set = model_runs.data_set_of(models.load(model))
      if data_set not in folders:
        folders |= model_runs.write_files(pathlib.Path(folder), effort.rows, (data_set,), _FILES)
      for case in cases:
        if time.monotonic() > deadline:
          late.append(case.name)
          continue
        try:
          table.add(case, _measure(case, folders[data_set], on_gpu, effort))
        except Exception as error:  # The other cases are worth as much.
          table.fail(case, error)
      deadline = time.monotonic() + budget - _END_SECONDS
  if late:
    print(f"\nNot measured, because the time was over: {', '.join(late)}.")


def main() -> None:
  """Measures what the command line asks for."""
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu", help="where the models train")
  parser.add_argument("--models", nargs="+", choices=_GOALS, default=list(_GOALS), help="the models")
  parser.add_argument("--tf_data", nargs="+", choices=_PIPELINES, default=list(_PIPELINES),
                      help="what tf.data does, as in modelzoo/")
  parser.add_argument("--only", nargs="+", metavar="PATTERN", help="the cases, such as 'dlrm:best:smart_*'")
  parser.add_argument("--list", action="store_true", help="print the names of the cases, and measure nothing")
  parser.add_argument("--budget", type=float, metavar="SECONDS", help="how long a model may take")
  parser.add_argument("--batch_size", type=int, help=f"rows of a step; {_BATCH} by default")
  parser.add_argument("--quick", action="store_true", help="measure too little to mean anything")
  arguments = parser.parse_args()
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  chosen = _chosen(arguments)
  if not chosen:
    sys.exit(f"No case has the name {' or '.join(arguments.only)}; --list prints all names.")
  if arguments.list:
    print("\n".join(case.name for cases in chosen.values() for case in cases))
    return
  effort = _QUICK if arguments.quick else _FULL
  if arguments.batch_size:
    effort = effort._replace(batch=arguments.batch_size)
  whole = os.environ.get("GPU_BENCHMARK_SECONDS")
  budget = arguments.budget or (float(whole) / len(chosen) if whole else _SECONDS)
  on_gpu = arguments.device == "gpu"
  print(f"### Models on a {arguments.device.upper()}\n", flush=True)
  _run(chosen, on_gpu, budget, effort)
  print(f"""
The models of modelzoo/ with the default sizes, batches of {effort.batch} rows, {_FILES} files. With `best`, tf.data
reads files in parallel, parses and prepares batches in parallel, and prefetches; with `deeprec`, it parses in parallel,
and the graph hashes; with `plain`, the graph does both. Each case is a session of its own, {effort.warm_up_seconds} s
old ({effort.settling_seconds} s with AUTOTUNE), in a block of {effort.seconds} s and {_STEPS_PER_RECORD} steps or more
for each record of the buffer. The limit is the longest of the source alone, in one or several threads, of the step
alone, with a record that is on the device, and of the CPU time of both over the {os.cpu_count()} cores.""")


if __name__ == "__main__":
  main()
