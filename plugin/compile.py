# SPDX-License-Identifier: Apache-2.0
"""Compiles and links the plugin's library against an installed TensorFlow, and compiles again only what has changed.

Many files are compiled as one: a compiler spends most of its time on what each of them includes of TensorFlow.
"""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import sysconfig

_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT / "plugin"))

import message_classes  # noqa: E402  # pylint: disable=g-import-not-at-top,wrong-import-position

_ROOM = "tensorflow_staging/plugin"
# Included last: what TensorFlow's headers include and some wheels do not have.
_IN_PLACE_OF_LLVM = f"{_ROOM}/in_place_of_llvm"

# The files from which everything else is found. Nothing includes the ones that register ops, kernels or passes.
_ENTRIES = (
    f"{_ROOM}/module.cc",
    f"{_ROOM}/begin_run_op.cc",
    f"{_ROOM}/iterator_kernels.cc",
    f"{_ROOM}/session_passes.cc",
    "tensorflow_staging/core/ahead/buffer/step_buffer_kernels.cc",
    "tensorflow_staging/core/ahead/buffer/step_buffer_ops.cc",
    "tensorflow_staging/core/ahead/buffer/step_delivery_pass.cc",
    "tensorflow_staging/core/ahead/buffer/workers_data_op.cc",
    "tensorflow_staging/core/ahead/division/input_kind_op.cc",
    "tensorflow_staging/core/graph/place/give_shares.cc",
    "tensorflow_staging/core/kernels/end_reads_op.cc",
    "tensorflow_staging/core/kernels/record_share_op.cc",
    "tensorflow_staging/core/kernels/stand_in_op.cc",
    "tensorflow_staging/core/kernels/tensor_buffer_ops.cc",
    "tensorflow_staging/core/ops/end_reads_op.cc",
    "tensorflow_staging/core/ops/record_share_op.cc",
    "tensorflow_staging/core/ops/stand_in_op.cc",
    "tensorflow_staging/core/ops/tensor_buffer_ops.cc",
    "tensorflow_staging/core/smart_stage/smart_stage_pass.cc",
)

# The declarations of a header may be defined in files with other names.
_DEFINED_IN = {
    "tensorflow_staging/core/buffer/tensor_buffer.h": ("tensorflow_staging/core/buffer/tensor_buffer_runs.cc",),
}

# Files of core/ that depend on protoc's classes or on a patch, and what is compiled in their place.
_IN_PLACE_OF = {
    "tensorflow_staging/core/protobuf/staging_fields_decoder.cc": f"{_ROOM}/staging_fields_decoder.cc",
    "tensorflow_staging/core/smart_stage/unstaged_runs.cc": f"{_ROOM}/unstaged_runs.cc",
}

# Only these may include Python's headers. They are one unit, of which each Python gets its own object.
_USE_PYTHON = (f"{_ROOM}/module.cc", "tensorflow_staging/python/")
_PYTHON_UNIT = "python"
# How many units the other files are compiled in: as many as take about as long each as that one.
_OTHER_UNITS = 5

_INCLUDE = re.compile(r'^#include "(tensorflow_staging/[^"]+)"$', re.MULTILINE)


def sources() -> list[str]:
  """Returns the C++ files of the plugin: the entries, and what defines what they and their headers declare."""
  known, to_visit = set(), list(_ENTRIES)
  while to_visit:
    path = to_visit.pop()
    path = _IN_PLACE_OF.get(path, path)
    if path in known or not (_ROOT / path).exists():
      continue
    known.add(path)
    for header in _INCLUDE.findall((_ROOT / path).read_text()):
      to_visit += [header, header.removesuffix(".h") + ".cc", *_DEFINED_IN.get(header, ())]
  return sorted(path for path in known if path.endswith(".cc"))


def units() -> dict[str, str]:
  """Returns the names and the text of what is compiled: each unit includes its share of the sources, by their size.

  A name in an anonymous namespace can be defined once in a unit, so no two sources should have the same one.
  """
  of_unit: dict[str, list[str]] = {}
  sizes = {path: (_ROOT / path).stat().st_size for path in sources()}
  of_unit[_PYTHON_UNIT] = [path for path in sizes if path.startswith(_USE_PYTHON)]
  total = sum(sizes.values()) - sum(sizes[path] for path in of_unit[_PYTHON_UNIT])
  before = 0
  for path in sizes:
    if not path.startswith(_USE_PYTHON):
      of_unit.setdefault(f"unit_{before * _OTHER_UNITS // total}", []).append(path)
      before += sizes[path]
  return {name: "".join(f'#include "{path}"\n' for path in paths) for name, paths in of_unit.items()}


class Build:
  """One build of the library: where its files are, and the commands that make them."""

  def __init__(self, tensorflow: pathlib.Path, pybind11: pathlib.Path, folder: pathlib.Path, optimize: str):
    """Sets up a build.

    Args:
      tensorflow: The folder of the package tensorflow.
      pybind11: The folder with pybind11's headers.
      folder: Where object files go, of one TensorFlow.
      optimize: The compiler's flag, such as -O2.
    """
    folder.mkdir(parents=True, exist_ok=True)
    message_classes.write_headers(_ROOT, folder / "messages")
    self._tensorflow = tensorflow
    self._folder = folder
    self._flags = [
        "g++", "-std=c++17", optimize, "-DNDEBUG", "-fPIC", "-pthread", "-fvisibility=hidden",
        # The flags of TensorFlow's wheels that change the layout of classes; tf.sysconfig.get_compile_flags() has them.
        "-D_GLIBCXX_USE_CXX11_ABI=1", "-DEIGEN_MAX_ALIGN_BYTES=64",
        # As in the fork. The official headers are system headers here, since they are not free of warnings.
        "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-missing-field-initializers",
        # The older names of Abseil's Status are the ones that 2.14 has.
        "-Wno-deprecated-declarations", "-Werror",
        # First, so before what Bazel generates for the fork.
        f"-I{folder / 'messages'}", "-I.", "-isystem", str(self._link_to(tensorflow / "include")),
        "-idirafter", _IN_PLACE_OF_LLVM,
    ]
    self._flags_for_python = ["-isystem", str(pybind11), "-isystem", sysconfig.get_path("include")]

  def make(self, library: pathlib.Path, jobs: int) -> None:
    """Makes the library, with so many compilers at the same time."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
      objects = list(pool.map(self._compile, units().items()))
    libraries = [f"-l:lib{name}.so.2" for name in ("tensorflow_cc", "tensorflow_framework")]
    _run_if_changed(library, [
        "g++", "-shared", "-pthread", "-o", str(library), *map(str, objects), f"-L{self._tensorflow}", *libraries,
        "-Wl,--gc-sections", "-Wl,-s", f"-Wl,-soname,{library.name}",
    ], objects)
    if missing := self._missing_symbols(library):
      library.unlink()
      raise SystemExit(f"TensorFlow does not export what {library.name} needs:\n" + "\n".join(missing))

  def _link_to(self, headers: pathlib.Path) -> pathlib.Path:
    """Returns the path of TensorFlow's headers that compilers get: the same for each Python, as the headers are."""
    link = self._folder / "include"
    if not link.is_symlink() or link.readlink() != headers:
      link.unlink(missing_ok=True)
      link.symlink_to(headers)
    return link

  def _missing_symbols(self, library: pathlib.Path) -> list[str]:
    """Returns the symbols that nothing defines. Without this, only a program would find them, perhaps late."""
    printed = subprocess.run(
        ["ldd", "-r", str(library)], capture_output=True, text=True, check=False,
        env={**os.environ, "LD_LIBRARY_PATH": str(self._tensorflow)})
    names = re.findall(r"undefined symbol: (\S+)", printed.stdout + printed.stderr)
    # Python's own come from the interpreter.
    return [name for name in names if not name.startswith(("Py", "_Py"))]

  def _compile(self, unit: tuple[str, str]) -> pathlib.Path:
    """Compiles a unit, given by its name and text, and returns its object file."""
    name, text = unit
    source = self._folder / f"{name}.cc"
    if not source.exists() or source.read_text() != text:
      source.write_text(text)
    made, flags = source.with_suffix(".o"), self._flags
    if name == _PYTHON_UNIT:
      made = made.with_suffix(f".{sys.implementation.cache_tag}.o")
      flags = [*flags, *self._flags_for_python]
    dependencies = made.with_suffix(".d")
    inputs = [source]
    if dependencies.exists():
      listed = shlex.split(dependencies.read_text().replace("\\\n", " ").partition(":")[2])
      inputs += [_ROOT / path for path in listed]
    _run_if_changed(made, [*flags, "-MMD", "-MF", str(dependencies), "-c", str(source), "-o", str(made)], inputs)
    return made


def _run_if_changed(made: pathlib.Path, command: list[str], inputs: list[pathlib.Path]) -> None:
  """Runs a command unless what it makes is newer than its inputs, and was made by the same command."""
  digest = made.with_name(made.name + ".command")
  text = hashlib.sha256("\0".join(command).encode()).hexdigest()
  if made.exists() and digest.exists() and digest.read_text() == text:
    made_at = made.stat().st_mtime_ns
    if all(path.exists() and path.stat().st_mtime_ns <= made_at for path in inputs):
      return
  done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
  if done.returncode != 0:
    raise SystemExit(f"{shlex.join(command)}\n{done.stdout}{done.stderr}")
  digest.write_text(text)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--tensorflow", type=pathlib.Path, required=True, help="the folder of the package tensorflow")
  parser.add_argument("--pybind11", type=pathlib.Path, required=True, help="the folder with pybind11's headers")
  parser.add_argument("--folder", type=pathlib.Path, required=True, help="where object files go, of one TensorFlow")
  parser.add_argument("--optimize", default="-O2")
  parser.add_argument("--jobs", type=int, default=2)
  parser.add_argument("library", type=pathlib.Path, help="what to make")
  args = parser.parse_args()
  Build(args.tensorflow.resolve(), args.pybind11.resolve(), args.folder.resolve(), args.optimize).make(
      args.library.resolve(), args.jobs)


if __name__ == "__main__":
  main()
