# SPDX-License-Identifier: Apache-2.0
"""Finds and installs the stock wheel, with which the benchmarks compare ours."""

from __future__ import annotations

import os
import pathlib
import subprocess

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def path() -> str:
  """Returns the path at which Bazel keeps the official wheel from which ours is made."""
  base = subprocess.run(
      ["bazel", "info", "output_base"], cwd=_ROOT, check=True, capture_output=True, text=True
  ).stdout.strip()
  return os.path.realpath(f"{base}/external/tensorflow_wheel_cpu/base.whl")


def make_environment(folder: str) -> str:
  """Creates a virtual environment like .venv, with the stock wheel in place of ours.

  Args:
    folder: An empty folder for the environment.

  Returns:
    The path of the environment's Python.
  """
  python = f"{folder}/bin/python"
  pip = (python, "-m", "pip", "install", "--quiet")
  for command in (
      (str(_ROOT / ".venv/bin/python"), "-m", "venv", folder),
      (*pip, "--require-hashes", "-r", "third_party/python/requirements.txt"),
      (*pip, "--no-deps", path()),
  ):
    subprocess.run(command, cwd=_ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
  return python
