# SPDX-License-Identifier: Apache-2.0
"""Decides which of CUDA's libraries a kit has.

TensorFlow does not link CUDA: it loads libraries by name, and registers no GPU if one is missing. Until it calls a
function of a library, an empty one of the same name does as well.
"""

from __future__ import annotations

import pathlib
import subprocess
from collections.abc import Iterable

from packaging import requirements

# Neither TensorFlow nor another of CUDA's libraries names these, so nothing can call them.
_UNNAMED = ("cufftw", "curand", "cusolverMg", "nvblas")


def check_versions(required: Iterable[str], versions: dict[str, str]) -> None:
  """Checks that CUDA's libraries are those that TensorFlow's extra and-cuda names, in versions that it allows.

  Args:
    required: TensorFlow's requirements.
    versions: The packages in the kit.

  Raises:
    ValueError: If TensorFlow has no such extra, so it is not a CUDA wheel; or if a version differs.
  """
  extra = {}
  for requirement in map(requirements.Requirement, required):
    if requirement.marker is not None and requirement.marker.evaluate({"extra": "and-cuda"}):
      extra[requirement.name] = requirement.specifier
  if not extra:
    raise ValueError("the wheel is not a CUDA wheel: build it with ci/build_wheel.sh --config=cuda")
  for name, version in versions.items():
    if name.startswith("nvidia-") and version not in extra.get(name, ()):
      raise ValueError(f"the kit's requirements have {name} {version}, but the wheel requires {extra.get(name)}")


def leave_out(folder: pathlib.Path, stand_ins: Iterable[str]) -> list[str]:
  """Deletes the libraries that nothing can call, and replaces others by empty ones. Changes the folder.

  Args:
    folder: That of CUDA's libraries.
    stand_ins: The libraries to replace, as in "cudnn". What only such a library loads, as libcudnn_ops_infer.so.8, is
      deleted.

  Returns:
    The names of the empty libraries.

  Raises:
    ValueError: If there is no such library.
  """
  paths = sorted(folder.glob("*/lib/lib*.so*"))
  libraries = {path: path.name.removeprefix("lib").partition(".so")[0] for path in paths}
  if unknown := set(stand_ins) - set(libraries.values()):
    raise ValueError(f"there is no library {', '.join(sorted(unknown))} to stand in for:"
                     f" there are {', '.join(sorted(set(libraries.values())))}")
  empty = []
  for path, name in libraries.items():
    if name in stand_ins:
      _empty(path)
      empty.append(path.name)
    elif name in _UNNAMED or name.partition("_")[0] in stand_ins:
      path.unlink()
  return empty


def _empty(library: pathlib.Path) -> None:
  library.unlink()
  command = ["gcc", "-shared", "-nostdlib", "-xc", "/dev/null", "-o", library, f"-Wl,-soname,{library.name}"]
  subprocess.run(command, check=True, timeout=60)
