# SPDX-License-Identifier: Apache-2.0
"""The stock wheel, which ours is compared with."""

from __future__ import annotations

import os
import pathlib
import subprocess

_ROOT = pathlib.Path(__file__).resolve().parent.parent


def path() -> str:
  """Where Bazel has put the official wheel that ours is made from."""
  base = subprocess.run(
      ["bazel", "info", "output_base"], cwd=_ROOT, check=True, capture_output=True, text=True
  ).stdout.strip()
  return os.path.realpath(f"{base}/external/tensorflow_wheel_cpu/base.whl")


def make_environment(folder: str) -> str:
  """Makes a virtual environment like .venv, with the stock wheel in place of ours.

  Args:
    folder: Where; an empty folder.

  Returns:
    Its Python.
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
