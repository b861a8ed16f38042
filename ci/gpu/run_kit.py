# SPDX-License-Identifier: Apache-2.0
"""Runs an unpacked kit within a time budget, and writes the report; run.sh calls this program.

The report is written again after each step, so that there is one whatever happens. The exit status is 0 if there was a
GPU and every step passed.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import sys

import budget
import machine as machines
import report

# The seconds that each step may take at most: for the tests, each file of them. The benchmarks share what is left.
_UNPACK, _MACHINE, _LIBRARIES, _WARM_UP, _TESTS = 300, 30, 60, 180, 150


class _Run:
  """The steps that have run, and what they found."""

  def __init__(self, arguments: argparse.Namespace):
    self._budget = budget.Budget(arguments.seconds)
    self._pieces = arguments.pieces
    self._folder = pathlib.Path(__file__).resolve().parent.parent.parent
    self._report = arguments.report
    self._logs = self._folder / "logs"
    self._logs.mkdir(exist_ok=True)
    self._junit: list[pathlib.Path] = []
    self._about = json.loads((self._folder / "kit.json").read_text())
    self._machine: machines.Machine | None = None
    self._problem: str | None = "This machine was not looked at."
    self._steps: list[report.Step] = []

  def run(self) -> bool:
    """Runs all steps.

    Returns:
      Whether there is a GPU and all passed.
    """
    # First, because what is wrong there need not wait for the unpacking.
    self._look_at_machine()
    if self._unpack():
      self._step("CUDA's libraries", _LIBRARIES, "ci/gpu/cuda_libraries.py", "packages/nvidia", prints_markdown=True)
      self._step("warm-up", _WARM_UP, "ci/gpu/warm_up.py", prints_markdown=True)
      # A process for each file: a crash, which is how TensorFlow reports some errors of a GPU, ends only one.
      for path in sorted(self._folder.glob("ci/gpu/tests/*_test.py")):
        self._test(path.relative_to(self._folder).as_posix())
      names = sorted(path.relative_to(self._folder).as_posix() for path in self._folder.glob("benchmarks/gpu_*.py"))
      for done, name in enumerate(names):
        if self._problem:
          self._skip(name, "not run: there is no GPU to use")
        else:
          self._step(name, self._budget.left() / (len(names) - done), name, prints_markdown=True)
    return self._problem is None and all(step.result.passed for step in self._steps)

  def _test(self, name: str) -> None:
    self._junit.append(self._logs / f"{pathlib.PurePath(name).stem}.xml")
    self._junit[-1].unlink(missing_ok=True)
    self._step(name, _TESTS, "-m", "pytest", "-v", "-p", "no:cacheprovider", f"--junitxml={self._junit[-1]}",
               "-o", "junit_family=xunit1", f"--basetemp={self._folder / 'tests'}", name)

  def _unpack(self) -> bool:
    """Unpacks the pieces, unless an earlier run has unpacked the same ones."""
    manifest = self._pieces[0].with_name("manifest.txt")
    done = self._folder / "unpacked.txt"
    if manifest.exists() and done.exists() and done.read_text() == manifest.read_text():
      self._skip("unpacking", "passed: an earlier run has unpacked the same pieces", passed=True)
      return True
    done.unlink(missing_ok=True)
    if not self._step("unpacking", _UNPACK, "ci/gpu/pieces.py", *self._pieces, self._folder):
      return False
    if manifest.exists():
      done.write_text(manifest.read_text())
    return True

  def _look_at_machine(self) -> None:
    if self._step("look at the machine", _MACHINE, "ci/gpu/machine.py"):
      self._machine = machines.Machine.from_json(self._steps[-1].log.read_text().splitlines()[-1])
      self._problem = machines.problem(self._machine, self._about["code"])
    else:
      self._problem = "Looking for the driver and the GPU failed: see the log below."
    self._write()
    if self._problem:
      print(self._problem, flush=True)

  def _step(self, name: str, share: float, *arguments: str | pathlib.Path, prints_markdown: bool = False) -> bool:
    print(f"{name} ...", flush=True)
    log = self._logs / (re.sub(r"[^\w.]+", "_", name) + ".log")
    output = log.with_suffix(".md") if prints_markdown else None
    for path in (log, output):
      if path:
        # A step that is not run must not be reported with the log of an earlier run.
        path.unlink(missing_ok=True)
    command = [sys.executable, "-s", *arguments]
    result = self._budget.run(command, share, log, self._environment(share), self._folder, output)
    print(f"{name}: {result.outcome}, {result.seconds:.1f} s", flush=True)
    self._steps.append(report.Step(name, result, log, output))
    self._write()
    return result.passed

  def _skip(self, name: str, reason: str, passed: bool = False) -> None:
    print(f"{name}: {reason}", flush=True)
    self._steps.append(report.Step(name, budget.Result(passed, reason, 0), self._logs / "missing"))
    self._write()

  def _environment(self, share: float) -> dict[str, str]:
    folders = [str(self._folder / "lib")]
    if self._machine and self._machine.driver and "/" in self._machine.driver:
      folders.append(os.path.dirname(self._machine.driver))
    folders += filter(None, [os.environ.get("LD_LIBRARY_PATH_OF_MACHINE")])
    return os.environ | {
        "LD_LIBRARY_PATH": ":".join(folders),
        "PYTHONPATH": str(self._folder / "packages"),
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        # Load, and compile, only the kernels that are used; keep what was compiled.
        "CUDA_MODULE_LOADING": "LAZY",
        "CUDA_CACHE_PATH": str(self._folder / "cuda-cache"),
        "CUDA_CACHE_MAXSIZE": str(2 << 30),
        # Programs that follow each other may overlap a little.
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        # For benchmarks, which can choose how often they measure.
        "GPU_BENCHMARK_SECONDS": str(int(min(share, self._budget.left()))),
    }

  def _write(self) -> None:
    text = report.report(self._about, self._machine, self._problem, self._steps, self._junit)
    temporary = self._report.with_name(self._report.name + ".new")
    temporary.write_text(text)
    temporary.replace(self._report)


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--seconds", type=float, required=True, help="the time for all steps together")
  parser.add_argument("--report", type=pathlib.Path, required=True, help="the file to write")
  parser.add_argument("pieces", type=pathlib.Path, nargs="+", help="the pieces, in their order")
  arguments = parser.parse_args()
  passed = _Run(arguments).run()
  print(f"The report is in {arguments.report}.")
  return 0 if passed else 1


if __name__ == "__main__":
  sys.exit(main())
