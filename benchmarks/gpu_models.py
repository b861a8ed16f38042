#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what SmartStage gains for models on a GPU, for benchmarks/gpu.md.

`.venv/bin/python benchmarks/gpu_models.py` prints Markdown. The environment variable GPU_BENCHMARK_SECONDS says how
long it may take, by default four minutes; ci/gpu/run.sh sets it. With `--device=cpu` it tries itself on a machine
without a GPU.
"""

from __future__ import annotations

import argparse
import contextlib
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
_GOALS = {"dlrm": 2.05, "din": 1.20, "dien": 1.005, "dssm": 1.10, "deepfm": 1.25}
_BASE = "none"
# The one that the documents recommend for a GPU, and for which they give gains.
_GOAL_WAY = "SmartStage, stage_subgraph_on_cpu"
# By name: the stages. The one with several streams is opened first, because the first session of a process determines
# the devices; in the others, all ops run on stream 0.
_WAYS = {
    "SmartStage, two streams": dict(staging="smart", streams=2),
    _BASE: dict(),
    "SmartStage": dict(staging="smart"),
    _GOAL_WAY: dict(staging="smart", stage_on_cpu=True),
}
_CAPACITY = 4
_THREADS = 4
_ROUNDS = 5
_TRACED_STEPS = 10
_ROWS = 40_000
_BATCH = 2048
_SECONDS = 240
# Files, and the first steps of each way.
_PREPARATION = 0.4


def _run(name: str, folders: dict[str, pathlib.Path], way: dict, on_gpu: bool, tf_data: str, batch: int) -> Run:
  model = models.load(name)
  way = {key: value for key, value in way.items() if on_gpu or key == "staging"}
  if way.get("staging"):
    way |= dict(capacity=_CAPACITY, threads=_THREADS)
  files = Input(data=str(folders[model_runs.data_set_of(model)]), batch_size=batch, tf_data=tf_data)
  return Run(model, model.hyperparameters(), files, staging=Staging(gpu=on_gpu, **way))


def _milliseconds_of_a_step(seconds: float) -> str:
  return f"{seconds / _TRACED_STEPS * 1e3:.2f}"


def _percent(part: float, whole: float) -> str:
  return f"{part / whole:.0%}" if whole else "-"


def _measure(
    name: str, folders: dict[str, pathlib.Path], on_gpu: bool, tf_data: str, batch: int, seconds: float
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
  """Returns the rows of a model in the two tables."""
  with contextlib.ExitStack() as stack:
    steps = {
        way: stack.enter_context(model_runs.stepping(_run(name, folders, settings, on_gpu, tf_data, batch)))
        for way, settings in _WAYS.items()
    }
    for step in steps.values():
      step()
    rounds = blocks.in_turns(steps, seconds, _ROUNDS)
    traces = {way: overlap_trace.profile(step, _TRACED_STEPS) for way, step in steps.items()} if on_gpu else {}
  label = models.load(name).name
  speeds, overlaps = [], []
  for way in sorted(_WAYS, key=lambda way: way != _BASE):
    gain = blocks.ratio(rounds, way, _BASE)
    goal = f"{_GOALS[name]:.4g}" if on_gpu and way == _GOAL_WAY else ""
    speeds.append((
        label, tf_data, way, f"{1 / blocks.median(rounds[way]).seconds:.1f}", f"{gain.median:.3f}",
        report.interval(gain), goal))
    trace = traces.get(way)
    if trace is not None:
      overlaps.append((
          label, tf_data, way, _milliseconds_of_a_step(trace.kernels), _milliseconds_of_a_step(trace.copies),
          _percent(trace.copies_beside_kernels, trace.copies), _percent(trace.kernels_beside_kernels, trace.kernels)))
  return speeds, overlaps


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu", help="where the models train")
  parser.add_argument("--models", nargs="+", choices=_GOALS, default=list(_GOALS), help="the models")
  parser.add_argument("--tf_data", nargs="+", choices=("plain", "best"), default=["plain", "best"],
                      help="whether the graph parses and hashes, or tf.data, in parallel")
  parser.add_argument("--batch_size", type=int, default=_BATCH, help="rows of a step")
  arguments = parser.parse_args()
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  deadline = time.monotonic() + float(os.environ.get("GPU_BENCHMARK_SECONDS", _SECONDS))
  speeds = [("model", "tf.data", "stages", "steps/s", "times as fast", report.INTERVAL, "goal")]
  overlaps = [("model", "tf.data", "stages", "kernels, ms a step", "copies to the GPU, ms a step",
               "of these beside kernels", "kernels beside others")]
  left = len(arguments.models) * len(arguments.tf_data)
  with tempfile.TemporaryDirectory() as folder:
    data_sets = {model_runs.data_set_of(models.load(name)) for name in arguments.models}
    folders = model_runs.write_files(pathlib.Path(folder), _ROWS, sorted(data_sets))
    for name in arguments.models:
      for tf_data in arguments.tf_data:
        share = (deadline - time.monotonic()) / left
        more = _measure(
            name, folders, arguments.device == "gpu", tf_data, arguments.batch_size,
            max(1, share * (1 - _PREPARATION)))
        speeds += more[0]
        overlaps += more[1]
        left -= 1
  print(f"### Models on a {arguments.device.upper()}\n")
  print(report.markdown(speeds, left=3))
  if len(overlaps) > 1:
    print("\n### What the GPU did at the same time\n")
    print(report.markdown(overlaps, left=3))
  print(f"""
The models of modelzoo/ with the default sizes, batches of {arguments.batch_size} rows of a file, {_CAPACITY} records in
the buffer and {_THREADS} producers. With `plain`, the graph parses and hashes the rows; with `best`, tf.data does, in
parallel, and prefetches. All ways of a model are open in one process and take turns; the numbers are medians of
{_ROUNDS} rounds, and the interval is that of the ratio.""")


if __name__ == "__main__":
  main()
