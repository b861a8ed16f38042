# SPDX-License-Identifier: Apache-2.0
"""Packs the kit for a machine with a GPU into one archive; pack.sh prepares the folder of packages.

The archive has a folder gpu-kit, with run.sh, Python and the libraries that a bare machine lacks, the packages, and
what the kit runs of the repository. kit.json says what the kit is.
"""

from __future__ import annotations

import argparse
import email.parser
import io
import json
import pathlib
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable

import about as descriptions
import chips
import cuda_libraries
import elf
import kit_parts
import machine_libraries
import zeroing

_ROOT = pathlib.Path(__file__).resolve().parents[2]
# What the parts of a run need of the repository.
_REPOSITORY = ("benchmarks", "ci", "conftest.py", "gpu_kit", "modelzoo", "plugin/tests/as_fork", "pyproject.toml",
               "tensorflow_staging/python")
# Parts of Python, and of the packages, that no part of a run uses.
_UNUSED_PYTHON = re.compile(
    r"(test|idlelib|tkinter|turtledemo|ensurepip|lib2to3|pydoc_data|site-packages|dist-packages|config-[^/]*)/"
    r"|lib-dynload/(_tkinter|nis|_test\w*|_xx\w*)\.|.*__pycache__/")
_UNUSED_PACKAGES = (
    r"(tensorflow/include|clang|pip|setuptools|jedi|parso|auditwheel|elftools|lz4|pybind11|tensorboard_data_server"
    r"|tensorflow_io_gcs_filesystem|nvidia/\w+/include)/|.*__pycache__/"
    r"|nvidia/.*\.(a|alt\.so.*|ltoir)$|nvidia/nccl/.*\.bc$")
# Of CUDA's compiler, XLA needs what turns its code into a GPU's. No part of the fork's kit uses XLA.
_UNUSED_COMPILER = {
    kit_parts.FORK: "nvidia/cuda_nvcc/", kit_parts.PLUGIN: "nvidia/cuda_nvcc/(?!bin/ptxas$|nvvm/libdevice/)"}
# What can be carried at a time to some machines.
_PIECE = 60_000_000

Files = dict[str, pathlib.Path]


def _tree(folder: pathlib.Path, unused: re.Pattern[str]) -> Files:
  """Returns a folder's files by their paths in it, without those that match a pattern."""
  paths = ((path, path.relative_to(folder).as_posix()) for path in sorted(folder.rglob("*")))
  return {name: path for path, name in paths if not unused.match(name) and path.is_file()}


def _python() -> Files:
  """Returns this interpreter, with its standard library, as it is in the kit."""
  version = f"python{sys.version_info.major}.{sys.version_info.minor}"
  files = {f"python/bin/{version}": pathlib.Path(sys._base_executable).resolve()}
  standard = pathlib.Path(sysconfig.get_path("stdlib"))
  files |= {f"python/lib/{version}/{name}": path for name, path in _tree(standard, _UNUSED_PYTHON).items()}
  if sysconfig.get_config_var("Py_ENABLE_SHARED"):
    library = sysconfig.get_config_var("INSTSONAME")
    files[f"lib/{library}"] = pathlib.Path(sysconfig.get_config_var("LIBDIR"), library)
  return files


def _repository() -> Files:
  """Returns the files of the repository that the kit needs, also those that git does not know yet."""
  command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *_REPOSITORY]
  listed = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
  return {name: _ROOT / name for name in sorted(set(listed) - {""}) if (_ROOT / name).is_file()}


def _shrink(files: Files, target: list[chips.Chip]) -> dict[str, list[list[str]]]:
  """Zeroes the GPU code of other chips in libraries, which pack to a fraction then.

  Returns:
    For each library with GPU code, all combinations of code that its containers kept.
  """
  code = {}
  for path in files.values():
    try:
      kept = zeroing.keep_only(path, target)
    except ValueError as error:
      raise ValueError(f"{path}: {error}") from error
    if kept.containers:
      code[path.name] = [[str(each) for each in codes] for codes in sorted(kept.containers) if codes]
      print(f"  {path.name}: {kept.before / 1e6:,.1f} MB of GPU code, {kept.after / 1e6:,.1f} MB kept")
  return code


def check_native(code: dict[str, list[list[str]]], target: Iterable[chips.Chip]) -> None:
  """Checks that the driver need not compile TensorFlow's own code.

  Args:
    code: For each library, the combinations of code that its containers have kept for the chips.
    target: The chips.

  Raises:
    ValueError: If a library of TensorFlow has only PTX for a chip.
  """
  for name, combinations in code.items():
    for combination in combinations:
      for chip in target:
        best = chips.best(map(chips.parse_code, combination), chip)
        if "tensorflow" in name and best is not None and best.ptx:
          raise ValueError(f"{name} has no machine code for {chip}: build the wheel with"
                           f" ci/build_wheel.sh --config=cuda --chip={chip}")


def pack(packages: pathlib.Path, out: pathlib.Path, target: list[chips.Chip], stand_ins: Iterable[str]) -> None:
  """Writes the archive.

  Args:
    packages: The folder of packages, which is changed.
    out: The archive.
    target: The chips that the kit is for.
    stand_ins: The libraries of CUDA that an empty one replaces, as in "cudnn".

  Raises:
    ValueError: If a kit of these packages could not run.
  """
  about = descriptions.packages(packages)
  metadata, = packages.glob("tensorflow-*.dist-info/METADATA")
  required = email.parser.Parser().parsestr(metadata.read_text()).get_all("Requires-Dist", [])
  cuda_libraries.check_versions(required, about["packages"])
  empty = cuda_libraries.leave_out(packages / "nvidia", stand_ins)

  files = _tree(packages, re.compile(f"{_UNUSED_PACKAGES}|{_UNUSED_COMPILER[about['kind']]}"))
  code = _shrink({name: path for name, path in files.items() if elf.is_elf(path)}, target)
  if about["kind"] == kit_parts.FORK:
    check_native(code, target)
  files = _python() | {f"packages/{name}": path for name, path in files.items()}
  needed = machine_libraries.needed_by(path for path in files.values() if elf.is_elf(path))
  files |= {f"lib/{name}": path for name, path in needed.items()}
  files |= _repository() | {"run.sh": _ROOT / "gpu_kit/run.sh"}
  about |= {"chips": [str(chip) for chip in target], "stand_ins": empty, "code": code}
  _write(out, files, (json.dumps(about, indent=2) + "\n").encode())
  size = sum(path.stat().st_size for path in files.values())
  packed = out.stat().st_size
  print(f"{out}: {packed / 1e6:,.0f} MB, which is {-(-packed // _PIECE)} pieces of 60 MB; {size / 1e9:.1f} GB unpacked")


def _write(out: pathlib.Path, files: Files, about: bytes) -> None:
  def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info

  # Links are followed: what they name may lie outside of the kit.
  with tarfile.open(out, "w:gz", compresslevel=6, dereference=True) as archive:
    info = tarfile.TarInfo("gpu-kit/kit.json")
    info.size, info.mode = len(about), 0o644
    archive.addfile(info, io.BytesIO(about))
    for name, path in sorted(files.items()):
      archive.add(path, f"gpu-kit/{name}", recursive=False, filter=plain)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--packages", type=pathlib.Path, required=True, help="the folder of packages, which is changed")
  parser.add_argument("--out", type=pathlib.Path, required=True, help="the archive to write")
  parser.add_argument("--chip", type=chips.parse_chip, action="append",
                      help="as sm_90, the default; several are possible")
  parser.add_argument("--stand-in", action="append", default=[], metavar="NAME",
                      help="cudnn, for example: leave this library out, so that ops that need it fail")
  arguments = parser.parse_args()
  try:
    pack(arguments.packages, arguments.out, arguments.chip or [chips.Chip(9, 0)], arguments.stand_in)
  except ValueError as error:
    sys.exit(f"error: {error}")


if __name__ == "__main__":
  main()
