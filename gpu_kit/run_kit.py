# SPDX-License-Identifier: Apache-2.0
"""Runs the parts of a kit within a time budget, and writes the report; in an unpacked kit, run.sh calls this program.

What a part prints is printed, and on disk, line by line; the report is written again after each part. So there is a
report whatever happens. The exit status is 0 if every part passed.

In the repository, the packages of the Python that runs this program take the place of a kit's: those of an environment
that has the fork or the plugin, and CUDA's libraries if there is a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import sysconfig
from typing import Any

import about as descriptions
import budget
import kit_parts
import machine as machines
import report

_FOLDER = pathlib.Path(__file__).resolve().parent.parent
_ABOUT = _FOLDER / "kit.json"
_IS_PACKED = _ABOUT.exists()
_PACKAGES = _FOLDER / "packages" if _IS_PACKED else pathlib.Path(sysconfig.get_path("platlib"))
# Where the logs are, and what the driver compiles.
_RESULTS = _FOLDER if _IS_PACKED else _FOLDER / "dist" / "gpu_kit"
_MACHINE_SECONDS = 20
# Of a part's time, what its program gets for imports and for its end.
_START_SECONDS = 8
# The library of CUDA that TensorFlow does not find by itself. The fork needs CUPTI for profiles; an official TensorFlow
# has no path to cuSOLVER where it looks for it first, and uses no GPU without it.
_NOT_FOUND = {kit_parts.FORK: "cuda_cupti", kit_parts.PLUGIN: "cusolver"}
# The plugin is tf.staging in the programs of the fork, which are written for Keras 2.
_AS_FORK = _FOLDER / "plugin/tests/as_fork"
_KERAS_2 = {"TF_API_VERSION": "2", "TF_USE_LEGACY_KERAS": "1"}


class _Run:
  """The parts that have run, and what they found."""

  def __init__(self, arguments: argparse.Namespace, about: dict[str, Any]):
    self._budget = budget.Budget(arguments.seconds)
    self._device = arguments.device
    self._report = arguments.report
    self._report.parent.mkdir(parents=True, exist_ok=True)
    self._printed = self._report.with_name(self._report.name + ".log").open("a", buffering=1)
    self._logs = _RESULTS / "logs"
    self._logs.mkdir(parents=True, exist_ok=True)
    self._junit: list[pathlib.Path] = []
    self._about = about
    self._machine: machines.Machine | None = None
    self._problem: str | None = "This machine was not looked at."
    self._steps: list[report.Step] = []

  def run(self, chosen: list[kit_parts.Part]) -> bool:
    """Runs parts.

    Returns:
      Whether all passed.
    """
    self._look_at_machine()
    for part in chosen:
      if self._device == "gpu" and self._problem:
        self._skip(part, "not run: there is no GPU to use")
      elif part.is_test:
        self._test(part)
      else:
        self._step(part)
    passed = all(step.result.passed for step in self._steps)
    return passed and (self._device == "cpu" or self._problem is None)

  def _look_at_machine(self) -> None:
    if self._step(kit_parts.Part("machine", _MACHINE_SECONDS, ("gpu_kit/machine.py",), prints_markdown=False)):
      self._machine = machines.Machine.from_json(self._steps[-1].log.read_text().splitlines()[-1])
      self._problem = machines.problem(self._machine, self._about["cuda"], self._about["code"])
    else:
      self._problem = "Looking for the driver and the GPU failed: see the log below."
    self._write()
    if self._problem:
      self._print(self._problem)

  def _test(self, part: kit_parts.Part) -> None:
    results = self._logs / f"{part.name}.xml"
    results.unlink(missing_ok=True)
    self._junit.append(results)
    self._step(part._replace(prints_markdown=False, command=(
        "-m", "pytest", "-v", "-p", "no:cacheprovider", f"--junitxml={results}", "-o", "junit_family=xunit1",
        f"--basetemp={_RESULTS / 'tests'}", *part.command)))

  def _step(self, part: kit_parts.Part) -> bool:
    self._print(f"## {part.name}, at most {min(part.seconds, self._budget.left()):.0f} s")
    log = self._logs / f"{part.name}.log"
    output = log.with_suffix(".md") if part.prints_markdown else None
    for path in (log, output):
      if path:
        # A part that is not run must not be reported with the log of an earlier run.
        path.unlink(missing_ok=True)
    command = [sys.executable, "-s", *part.arguments(self._device, str(_PACKAGES))]
    result = self._budget.run(
        command, part.seconds, log, self._environment(part), _FOLDER, output, self._print)
    self._print(f"{part.name}: {result.outcome}, {result.seconds:.1f} s")
    self._steps.append(report.Step(part.name, result, log, output))
    self._write()
    return result.passed

  def _skip(self, part: kit_parts.Part, reason: str) -> None:
    self._print(f"{part.name}: {reason}")
    self._steps.append(report.Step(part.name, budget.Result(False, reason, 0), self._logs / "missing"))
    self._write()

  def _environment(self, part: kit_parts.Part) -> dict[str, str]:
    folders = [str(_FOLDER / "lib"), str(_PACKAGES / "nvidia" / _NOT_FOUND[self._about["kind"]] / "lib")]
    if self._machine and self._machine.driver and "/" in self._machine.driver:
      folders.append(os.path.dirname(self._machine.driver))
    folders += filter(None, [os.environ.get("LD_LIBRARY_PATH_OF_MACHINE")])
    as_fork = part.calls_staging and self._about["kind"] == kit_parts.PLUGIN
    return os.environ | {
        "LD_LIBRARY_PATH": ":".join(folders),
        "PYTHONPATH": ":".join(map(str, [_PACKAGES, *([_AS_FORK] if as_fork else [])])),
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        # Keep what the driver compiles.
        "CUDA_CACHE_PATH": str(_RESULTS / "cuda-cache"),
        "CUDA_CACHE_MAXSIZE": str(2 << 30),
        # Programs that follow each other may overlap a little.
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "TF_CPP_MIN_LOG_LEVEL": "1",
        # For tests and benchmarks, which can choose how often they measure.
        "GPU_TESTS_DEVICE": f"/{self._device}:0",
        "GPU_BENCHMARK_SECONDS": str(max(1, int(min(part.seconds, self._budget.left()) - _START_SECONDS))),
        **(_KERAS_2 if as_fork else {}),
        **dict(part.environment),
    }

  def _print(self, line: str) -> None:
    print(line, flush=True)
    self._printed.write(line + "\n")

  def _write(self) -> None:
    text = report.report(self._about, self._machine, self._problem, self._steps, self._junit)
    temporary = self._report.with_name(self._report.name + ".new")
    temporary.write_text(text)
    temporary.replace(self._report)


def _of_environment() -> dict[str, Any]:
  """Describes the packages that this Python has, as kit.json would."""
  return descriptions.packages(_PACKAGES) | {"chips": [], "stand_ins": [], "code": {}}


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--seconds", type=float, default=300, help="the time for all parts together")
  parser.add_argument("--report", type=pathlib.Path, default=_RESULTS / "report.md", help="the file to write")
  parser.add_argument("--only", action="append", default=[], metavar="PART", help="run this part, and others so named")
  parser.add_argument("--stretch", type=float, default=1, help="how many times as long each part may take")
  parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu", help="cpu tries the parts themselves")
  arguments = parser.parse_args()
  about = json.loads(_ABOUT.read_text()) if _IS_PACKED else _of_environment()
  try:
    chosen = kit_parts.chosen(about["kind"], arguments.only)
  except ValueError as error:
    print(f"error: {error}", file=sys.stderr)
    return 1
  passed = _Run(arguments, about).run([part._replace(seconds=part.seconds * arguments.stretch) for part in chosen])
  print(f"The report is in {arguments.report}.")
  return 0 if passed else 1


if __name__ == "__main__":
  sys.exit(main())
