# SPDX-License-Identifier: Apache-2.0
"""Checks that SmartStage does not change the results of random graphs on a machine whose default device is a GPU.

A session takes long to start on a GPU, so several processes compare graphs at the same time. Prints what differs when
it is found, and then a table in Markdown.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_FIRST_SEED = 1_000_000
# More workers than that would wait for each other in the driver.
_MOST_WORKERS = 8
# For the imports, and for the graph that is compared when the time is over.
_START_SECONDS = 5
# A CPU and a GPU draw different numbers. The other random ops give the same values on both.
_DRAWS = re.compile("(Random|Truncated|Multinomial|ParameterizedTruncated)")


def _work(seed: int, stride: int, seconds: float, on_cpu: bool) -> None:
  """Compares graphs of every `stride`-th seed; prints a tally in JSON, or a difference, for each."""
  sys.path.append(str(_ROOT))
  # Finds the helpers of the tests in the source tree, and all else in the wheel.
  import conftest  # noqa: F401
  from tensorflow_staging.python.testing import random_graphs
  from tensorflow_staging.python.testing import smart_stage_comparison as comparison

  plain = comparison.config

  def config(*arguments):
    result = plain(*arguments)
    result.graph_options.optimizer_options.stage_subgraph_on_cpu = on_cpu
    return result

  comparison.config = config
  end = time.monotonic() + seconds
  while time.monotonic() < end:
    case = random_graphs.make(seed)
    draws = any(_DRAWS.match(op.type) for op in case.graph.get_operations())
    # Sums on a GPU have no fixed order, so results must be exact; those of graphs that Grappler may change are. With
    # stage_subgraph_on_cpu, ops of the region run on another device than without SmartStage.
    if case.grappler and not (on_cpu and draws):
      try:
        print(json.dumps(dataclasses.asdict(comparison.compare(seed))), flush=True)
      except comparison.DifferenceError as difference:
        print(difference, flush=True)
    seed += stride


def _check(seconds: float, workers: int, on_cpu: bool) -> tuple[dict[str, int], int]:
  """Compares graphs in several processes; returns the sum of the tallies, and the number of failures."""
  command = [sys.executable, "-s", __file__, f"--seconds={seconds}", f"--stride={workers}"] + ["--on_cpu"] * on_cpu
  processes = [
      subprocess.Popen([*command, f"--seed={_FIRST_SEED + worker}"], stdout=subprocess.PIPE, text=True)
      for worker in range(workers)
  ]
  total: dict[str, int] = {}
  failures = 0
  for process in processes:
    printed, _ = process.communicate()
    for line in printed.splitlines():
      if line.startswith("{"):
        for name, count in json.loads(line).items():
          total[name] = total.get(name, 0) + count
      else:
        print(f"a difference: {line}", flush=True)
        failures += 1
    if process.returncode:
      print(f"a process failed with status {process.returncode}", flush=True)
      failures += 1
  return total, failures


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--seconds", type=float, help="how long to compare; by default GPU_BENCHMARK_SECONDS for all")
  parser.add_argument("--seed", type=int, help="compare in this process, from this seed")
  parser.add_argument("--stride", type=int, default=1, help="the distance between the seeds of a process")
  parser.add_argument("--on_cpu", action="store_true", help="with stage_subgraph_on_cpu")
  arguments = parser.parse_args()
  if arguments.seed is not None:
    _work(arguments.seed, arguments.stride, arguments.seconds, arguments.on_cpu)
    return 0
  seconds = arguments.seconds or float(os.environ.get("GPU_BENCHMARK_SECONDS", 40)) / 2 - _START_SECONDS
  workers = max(1, min(_MOST_WORKERS, len(os.sched_getaffinity(0)) // 2))
  print("| stage_subgraph_on_cpu | graphs | with a stage | steps | failures |\n|---|---:|---:|---:|---:|", flush=True)
  passed = True
  for on_cpu in (False, True):
    total, failures = _check(seconds, workers, on_cpu)
    graphs, staged = total.get("graphs", 0), total.get("staged", 0)
    print(f"| {'yes' if on_cpu else 'no'} | {graphs} | {staged} | {total.get('steps', 0)} | {failures} |", flush=True)
    passed &= not failures and staged > 0.6 * graphs > 0
  return 0 if passed else 1


if __name__ == "__main__":
  sys.exit(main())
