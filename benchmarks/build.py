#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures build times, import times and the size of the wheel, next to the stock wheel's, for benchmarks/build.md.

`benchmarks/build.py > benchmarks/build.md` takes some minutes. It deletes all Bazel outputs of this workspace and
rebuilds them; the clean build includes the downloads.
"""

from __future__ import annotations

import glob
import os
import pathlib
import platform
import statistics
import subprocess
import tempfile
import time

from lib import plain_command_line
from lib import stock_wheel

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_CHANGED_FILE = _ROOT / "tensorflow_staging/core/buffer/tensor_buffer.cc"
_IMPORTS = 25
# Of outputs and of downloads, which this machine may keep from earlier builds.
_NO_CACHES = ("--disk_cache=", "--remote_cache=", "--repository_cache=")


def _run(*command: str, env: dict[str, str] | None = None) -> float:
  """Runs a command without showing its output; returns the seconds that it took."""
  began = time.monotonic()
  subprocess.run(command, cwd=_ROOT, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
  return time.monotonic() - began


def _clean_build() -> float:
  _run("bazel", "clean", "--expunge")
  return _run("ci/build_wheel.sh", *_NO_CACHES)


def _incremental_build() -> float:
  """Returns the seconds from a changed .cc file to the installed wheel."""
  original = _CHANGED_FILE.read_text()
  try:
    # The overlay exports the new function, so the change reaches every step of the build.
    addition = f"const char* BuildBenchmark() {{ return \"{time.time()}\"; }}"
    _CHANGED_FILE.write_text(f"{original}\nnamespace tensorflow::staging {{ {addition} }}\n")
    return _run("ci/build_wheel.sh") + _run("ci/install_wheel.sh")
  finally:
    _CHANGED_FILE.write_text(original)
    _run("ci/build_wheel.sh")
    _run("ci/install_wheel.sh")


def _import_times(pythons: dict[str, tuple[str, str]]) -> dict[str, float]:
  """Returns the median seconds of a process that imports TensorFlow, for each Python; the Pythons take turns."""
  times: dict[str, list[float]] = {name: [] for name in pythons}
  for turn in range(_IMPORTS + 1):
    for name, (python, api) in list(pythons.items())[:: (-1) ** turn]:
      environment = {**os.environ, "TF_API_VERSION": api, "TF_CPP_MIN_LOG_LEVEL": "3"}
      seconds = _run(python, "-c", "import tensorflow", env=environment)
      if turn:  # The first turn only fills the page cache.
        times[name].append(seconds)
  return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
  clean = _clean_build()
  _run("ci/install_wheel.sh")
  incremental = _incremental_build()
  ours = str(_ROOT / ".venv/bin/python")
  with tempfile.TemporaryDirectory() as folder:
    stock = stock_wheel.make_environment(folder)
    imports = _import_times({"stock": (stock, "2"), "v2": (ours, "2"), "v1": (ours, "1")})
    stock_size = os.path.getsize(stock_wheel.path())
  size = os.path.getsize(glob.glob(str(_ROOT / "dist/*.whl"))[0])
  version_2, version_1, stock = (f"{imports[name]:.2f} s" for name in ("v2", "v1", "stock"))
  ratio_2, ratio_1 = (f"{imports[name] / imports['stock']:.2f}" for name in ("v2", "v1"))
  rows = [
      ("what", "command", "here", "stock wheel", "ratio"),
      ("---", "---", "---:", "---:", "---:"),
      (
          "clean build, downloads included (target ≤ 15 min)",
          f"`bazel clean --expunge; ci/build_wheel.sh {' '.join(_NO_CACHES)}`",
          f"{clean:.0f} s",
          "–",
          "–",
      ),
      (
          "rebuild after one changed `.cc`, until the new wheel is installed (target ≤ 90 s)",
          "`ci/build_wheel.sh; ci/install_wheel.sh`",
          f"{incremental:.0f} s",
          "–",
          "–",
      ),
      ("import with TF 2's API", '`TF_API_VERSION=2 python -c "import tensorflow"`', version_2, stock, ratio_2),
      ("import with TF 1's API", '`python -c "import tensorflow"`', version_1, stock, ratio_1),
      ("wheel size", "`ls -l dist`", f"{size / 1e6:.1f} MB", f"{stock_size / 1e6:.1f} MB", f"{size / stock_size:.3f}"),
  ]
  print("# Build, import, size\n")
  machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
  print(f"`benchmarks/build.py > benchmarks/build.md`, one run on {machine}.\n")
  print("\n".join(f"| {' | '.join(row)} |" for row in rows))
  print(
      f"\nEach import time is the median of {_IMPORTS} fresh processes. The candidates take turns, and the page cache"
      " is warm.")


if __name__ == "__main__":
  plain_command_line.check(__doc__)
  main()
