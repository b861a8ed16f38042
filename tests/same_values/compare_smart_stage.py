#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs random graphs with and without SmartStage and compares every step.

`.venv/bin/python tests/same_values/compare_smart_stage.py --graphs 50000 --seed 0` compares the graphs of the seeds 0
to 49999, in several processes. It prints each difference when it finds it, and a summary as JSON in the last line. The
exit status is 1 if there was a difference.

`.venv/bin/python tests/same_values/compare_smart_stage.py --seed 7 --show` prints one graph and compares it.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

_ROOT = pathlib.Path(__file__).resolve().parents[2]
# A process ends after this many graphs, which frees the memory that TensorFlow keeps for them.
_GRAPHS_PER_PROCESS = 500
_SECONDS_PER_GRAPH = 10


def _arguments() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--seed", type=int, default=0, help="the seed of the first graph")
  parser.add_argument("--graphs", type=int, default=1, help="the number of graphs, of consecutive seeds")
  parser.add_argument("--processes", type=int, default=2, help="the number of processes that run at the same time")
  parser.add_argument("--show", action="store_true", help="print the graphs, and compare them in this process")
  parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
  return parser.parse_args()


def _load() -> None:
  """Makes the installed wheel, and the test helpers of the source tree, importable as in the tests."""
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
  sys.path[0] = str(_ROOT)
  import tensorflow as tf

  import conftest

  del conftest
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)


def _compare(first: int, count: int, show: bool) -> int:
  """Compares graphs in this process.

  Prints a JSON line for each graph that it starts (unless `show` prints the graph), for each difference, and for the
  tally of all graphs.

  Returns:
    The number of differences.
  """
  _load()
  import dataclasses

  from tensorflow_staging.python.testing import random_graphs
  from tensorflow_staging.python.testing import smart_stage_comparison as comparison

  tally = comparison.Tally()
  differences = 0
  for seed in range(first, first + count):
    if show:
      print(random_graphs.make(seed).text())
    else:
      # If the process crashes, the last of these lines names the graph.
      print(json.dumps({"started": seed}), flush=True)
    try:
      tally.add(comparison.compare(seed))
    except comparison.DifferenceError as difference:
      differences += 1
      print(json.dumps({"difference": str(difference), "seed": seed}), flush=True)
  print(json.dumps({"tally": dataclasses.asdict(tally)}), flush=True)
  return differences


def _worker(first: int, count: int) -> tuple[list[str], collections.Counter]:
  """Compares graphs in a new process.

  Returns:
    A text for each difference or crash, and the tally of the graphs.
  """
  command = [sys.executable, __file__, "--worker", f"--seed={first}", f"--graphs={count}"]
  try:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_SECONDS_PER_GRAPH * count + 60, check=False)
    output, end = done.stdout, f"the process exited with status {done.returncode}: {done.stderr[-2000:]}"
  except subprocess.TimeoutExpired as expired:
    output, end = (expired.stdout or b"").decode(), "the process did not end in time"
  lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
  problems = [f"{line['difference']}\n{_how_to_repeat(line['seed'])}" for line in lines if "difference" in line]
  tallies = [line["tally"] for line in lines if "tally" in line]
  if not tallies:
    last = [first, *(line["started"] for line in lines if "started" in line)][-1]
    problems.append(f"seed {last}: {end}\n{_how_to_repeat(last)}")
  return problems, collections.Counter(tallies[0] if tallies else {})


def _how_to_repeat(seed: int) -> str:
  script = pathlib.Path(__file__).resolve().relative_to(_ROOT)
  return f"  to repeat: .venv/bin/python {script} --seed {seed} --show"


def main() -> int:
  arguments = _arguments()
  if arguments.worker or arguments.show:
    return min(_compare(arguments.seed, arguments.graphs, arguments.show), 1)
  end = arguments.seed + arguments.graphs
  share = min(_GRAPHS_PER_PROCESS, -(-arguments.graphs // arguments.processes))
  ranges = [(first, min(share, end - first)) for first in range(arguments.seed, end, share)]
  total: collections.Counter = collections.Counter()
  differences = 0
  with concurrent.futures.ThreadPoolExecutor(arguments.processes) as pool:
    for problems, tally in pool.map(lambda work: _worker(*work), ranges):
      total.update(tally)
      differences += len(problems)
      for problem in problems:
        print(problem, flush=True)
  print(json.dumps({**total, "differences": differences}))
  return min(differences, 1)


if __name__ == "__main__":
  sys.exit(main())
