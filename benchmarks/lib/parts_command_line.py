# SPDX-License-Identifier: Apache-2.0
"""The command line of a benchmark of several parts, each of which is measured in a process of its own."""

from __future__ import annotations

import argparse
import json
import pathlib
import shlex
import subprocess
import sys
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from lib import quietness

# Measures a part, given whether to be quick; returns what JSON can keep.
Part = Callable[[bool], Any]
# Returns the page in Markdown, given the result of each part that was measured.
Write = Callable[[dict[str, Any]], str]


def main(script: str, description: str, parts: Mapping[str, Part], write: Write, quick: Sequence[str]) -> None:
  """Measures the parts that the command line asks for, and prints the page.

  Args:
    script: The file of the benchmark.
    description: What it measures.
    parts: The parts by their names.
    write: Returns the page.
    quick: The names of the parts that `--quick` measures, all in this process.
  """
  parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--quick", action="store_true", help="measure too little to mean anything")
  parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER",
                      help="keeps the result of each part, which the next run reuses")
  parser.add_argument("--under", default="", metavar="COMMAND",
                      help="runs each part under a command, such as 'flock LOCK' on a machine that others use")
  parser.add_argument("--part", choices=parts, help="measure only this part, and print its result as JSON")
  arguments = parser.parse_args()
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  if arguments.part:
    print(json.dumps(_watched(parts[arguments.part], arguments.quick)))
    return
  if arguments.quick:
    results = {name: _watched(parts[name], True) for name in quick}
  else:
    results = {name: _measure(script, name, arguments.under, arguments.keep) for name in parts}
  print(write({name: result for name, (result, _) in results.items()}))
  worst = quietness.Disturbance(*map(max, zip(*(disturbance for _, disturbance in results.values()), strict=True)))
  print(f"\nWhile a part was measured, {worst}, or less.")


def _watched(part: Part, quick: bool) -> tuple[Any, quietness.Disturbance]:
  watch = quietness.Watch()
  result = part(quick)
  return result, watch.disturbance()


def _measure(script: str, name: str, under: str, folder: pathlib.Path | None) -> Any:
  kept = folder / f"{pathlib.Path(script).stem}_{name}.json" if folder else None
  if kept and kept.exists():
    return json.loads(kept.read_text())
  command = [*shlex.split(under), sys.executable, script, "--part", name]
  output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
  result = output.splitlines()[-1]
  if kept:
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_text(result)
  return json.loads(result)
