#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what SmartStage gains for models on a GPU, for benchmarks/gpu.md.

`.venv/bin/python benchmarks/gpu_models.py` prints a table in Markdown, each row when it is known. The environment
variable GPU_BENCHMARK_SECONDS says how long it may take, by default four minutes. With `--device=cpu` it tries itself
on a machine without a GPU.
"""

from __future__ import annotations

import argparse
import gc
import os
import pathlib
import tempfile
import time

import blocks
import model_runs
import overlap_trace
import report
import tensorflow as tf

from modelzoo.base import model as models
from modelzoo.base.dataset import Input
from modelzoo.base.staging import Staging
from modelzoo.base.training import Run

# The goals are the gains of DeepRec's documents, measured on an A100.
_GOALS = {"dlrm": 2.05, "deepfm": 1.25, "dssm": 1.10, "din": 1.20, "dien": 1.005}
_BASE = "none"
# The one that the documents recommend for a GPU, and for which they give gains.
_GOAL_WAY = "SmartStage, stage_subgraph_on_cpu"
_WAYS = {
    _BASE: dict(),
    "SmartStage": dict(staging="smart"),
    _GOAL_WAY: dict(staging="smart", stage_on_cpu=True),
}
_CAPACITY = 4
_THREADS = 4
_TRACED_STEPS = 10
_ROWS = 40_000
_BATCH = 2048
_SECONDS = 240
# Of the time of a way: for opening it and its first step, and for warming up.
_OPENING, _WARM_UP = 0.3, 0.3
# So many times the records that a full buffer can give away at once.
_LEAST_STEPS = 5 * _CAPACITY


def _run(name: str, folders: dict[str, pathlib.Path], way: dict, on_gpu: bool, tf_data: str, batch: int) -> Run:
  model = models.load(name)
  way = {key: value for key, value in way.items() if on_gpu or key == "staging"}
  if way.get("staging"):
    way |= dict(capacity=_CAPACITY, threads=_THREADS)
  files = Input(data=str(folders[model_runs.data_set_of(model)]), batch_size=batch, tf_data=tf_data)
  return Run(model, model.hyperparameters(), files, staging=Staging(gpu=on_gpu, **way))


def _of_a_gpu(step: blocks.Step) -> tuple[str, ...]:
  """Returns what the GPU did during a step, for the columns of the table."""
  trace = overlap_trace.profile(step, _TRACED_STEPS)
  if trace is None:
    return "", "", ""
  milliseconds = lambda seconds: f"{seconds / _TRACED_STEPS * 1e3:.2f}"
  beside = f"{trace.copies_beside_kernels / trace.copies:.0%}" if trace.copies else ""
  return milliseconds(trace.kernels), milliseconds(trace.copies), beside


def _measure(run: Run, seconds: float, on_gpu: bool) -> tuple[float, float, tuple[str, ...]]:
  """Returns the seconds of the first step and of the others, and what the GPU did."""
  with model_runs.stepping(run) as step:
    began = time.perf_counter()
    step()
    first = time.perf_counter() - began
    blocks.cost(step, seconds * _WARM_UP, _LEAST_STEPS)
    cost = blocks.cost(step, seconds * (1 - _OPENING - _WARM_UP), _LEAST_STEPS)
    traced = _of_a_gpu(step) if on_gpu else ("", "", "")
  # The graph of a session that was closed has cycles; its memory must not be freed while the next is measured.
  gc.collect()
  return first, cost.seconds, traced


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu", help="where the models train")
  parser.add_argument("--models", nargs="+", choices=_GOALS, default=list(_GOALS), help="the models")
  parser.add_argument("--tf_data", nargs="+", choices=("plain", "best"), default=["plain", "best"],
                      help="whether the graph parses and hashes, or tf.data, in parallel")
  parser.add_argument("--batch_size", type=int, default=_BATCH, help="rows of a step")
  arguments = parser.parse_args()
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  on_gpu = arguments.device == "gpu"
  deadline = time.monotonic() + float(os.environ.get("GPU_BENCHMARK_SECONDS", _SECONDS))
  titles = ("model", "tf.data", "stages", "steps/s", "times as fast", "goal", "first step, s", "kernels, ms a step",
            "copies to the GPU, ms a step", "of these beside kernels")
  print(report.markdown([titles], left=3), flush=True)
  left = len(arguments.models) * len(arguments.tf_data) * len(_WAYS)
  with tempfile.TemporaryDirectory() as folder:
    data_sets = {model_runs.data_set_of(models.load(name)) for name in arguments.models}
    folders = model_runs.write_files(pathlib.Path(folder), _ROWS, sorted(data_sets))
    for name in arguments.models:
      for tf_data in arguments.tf_data:
        base = None
        for way, settings in _WAYS.items():
          run = _run(name, folders, settings, on_gpu, tf_data, arguments.batch_size)
          first, seconds, traced = _measure(run, max(1.0, (deadline - time.monotonic()) / left), on_gpu)
          left -= 1
          base = base or seconds
          goal = f"{_GOALS[name]:.4g}" if on_gpu and way == _GOAL_WAY else ""
          row = (run.model.name, tf_data, way, f"{1 / seconds:.1f}", f"{base / seconds:.2f}", goal, f"{first:.1f}")
          row += traced
          print(f"| {' | '.join(row)} |", flush=True)
  print(f"""
The models of modelzoo/ on a {arguments.device.upper()} with the default sizes, batches of {arguments.batch_size} rows
of a file, {_CAPACITY} records in the buffer and {_THREADS} producers, each in a new session. With `plain`, the graph
parses and hashes the rows; with `best`, tf.data does, in parallel, and prefetches.""")


if __name__ == "__main__":
  main()
