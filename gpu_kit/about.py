# SPDX-License-Identifier: Apache-2.0
"""Says what a kit is of: the packages in a folder, and the repository's commit. That is the beginning of kit.json."""

from __future__ import annotations

import importlib.metadata
import pathlib
import re
import subprocess
from typing import Any

import kit_parts

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_BUILD = "tensorflow/python/platform/build_info.py"
_CUDA = re.compile(r"'cuda_version', '(\d+\.\d+)")


def packages(folder: pathlib.Path) -> dict[str, Any]:
  """Describes the packages in a folder, without importing them.

  Returns:
    The kind of a kit that they make, the versions of the wheel, of TensorFlow and of all packages, the version of CUDA
    that TensorFlow was compiled with (None if it was without), and the repository's commit.
  """
  found = importlib.metadata.distributions(path=[str(folder)])
  versions = dict(sorted((package.metadata["Name"], package.version) for package in found))
  plugin = versions.get("tensorflow-staging")
  return {
      "kind": kit_parts.PLUGIN if plugin else kit_parts.FORK,
      "wheel": f"tensorflow-staging {plugin}" if plugin else f"tensorflow {versions['tensorflow']}",
      "tensorflow": versions["tensorflow"],
      "cuda": _cuda(folder / _BUILD),
      "commit": _commit(),
      "packages": versions,
  }


def _cuda(build: pathlib.Path) -> str | None:
  match = _CUDA.search(build.read_text())
  return match[1] if match else None


def _commit() -> str:
  command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
  return subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout.strip()
