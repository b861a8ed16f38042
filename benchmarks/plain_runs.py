#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the cost of a run that uses none of our options with the stock wheel, for benchmarks/plain_runs.md.

`.venv/bin/python benchmarks/plain_runs.py > benchmarks/plain_runs.md` takes about three minutes. It starts itself with
the argument `measure` in each process that it compares; such a process prints the microseconds of each way to run.
"""

from __future__ import annotations

import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_PROCESSES = 9
_BLOCKS = 200
_RUNS_PER_BLOCK = 100
_WARM_UP_RUNS = 2000

_WAYS = ("`sess.run`", "a callable of `make_callable`")


def _microseconds(run: Callable[[], object]) -> float:
  """Returns the median microseconds of a run over all blocks."""
  for _ in range(_WARM_UP_RUNS):
    run()
  blocks = []
  for _ in range(_BLOCKS):
    began = time.perf_counter()
    for _ in range(_RUNS_PER_BLOCK):
      run()
    blocks.append((time.perf_counter() - began) / _RUNS_PER_BLOCK * 1e6)
  return statistics.median(blocks)


def _measure() -> None:
  import tensorflow as tf

  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    number = tf.compat.v1.placeholder_with_default(1.0, []) + 1.0
    ways = (lambda: session.run(number), session.make_callable(number))
    print(json.dumps([_microseconds(way) for way in ways]))


def _process(python: str) -> list[float]:
  """Measures in a fresh process; returns the microseconds in the order of `_WAYS`."""
  environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_API_VERSION": "2"}
  done = subprocess.run(
      [python, str(pathlib.Path(__file__).resolve()), "measure"], cwd=tempfile.gettempdir(), env=environment,
      check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
  return json.loads(done.stdout)


def main() -> None:
  from lib import stock_wheel

  with tempfile.TemporaryDirectory() as folder:
    pythons = {"here": str(_ROOT / ".venv/bin/python"), "stock": stock_wheel.make_environment(folder)}
    found: dict[str, list[list[float]]] = {name: [] for name in pythons}
    for turn in range(_PROCESSES):
      for name, python in list(pythons.items())[:: (-1) ** turn]:
        found[name].append(_process(python))
  print("# The cost of a run that uses none of our options\n")
  print(
      "`.venv/bin/python benchmarks/plain_runs.py > benchmarks/plain_runs.md`, one run on"
      f" {os.cpu_count()} cores, {platform.system()} {platform.machine()}.\n")
  print("| way to run one addition | µs here | min–max | µs on the stock wheel | min–max | ratio |")
  print("| --- | ---: | ---: | ---: | ---: | ---: |")
  for way, title in enumerate(_WAYS):
    cells, medians = [], {}
    for name, processes in found.items():
      values = [process[way] for process in processes]
      medians[name] = statistics.median(values)
      cells += [f"{medians[name]:.2f}", f"{min(values):.2f}–{max(values):.2f}"]
    print(f"| {title} | {' | '.join(cells)} | {medians['here'] / medians['stock']:.3f} |")
  print(f"""
The numbers are the median, minimum and maximum of {_PROCESSES} fresh processes for each wheel; the wheels take
turns. A process runs {_BLOCKS} blocks of {_RUNS_PER_BLOCK} runs, after {_WARM_UP_RUNS} runs that are not counted,
and reports the median of its blocks.""")


if __name__ == "__main__":
  if sys.argv[1:] == ["measure"]:
    _measure()
  else:
    from lib import plain_command_line

    plain_command_line.check(__doc__)
    main()
