# SPDX-License-Identifier: Apache-2.0
"""Packs the part of the kit that stays as it is from commit to commit; pack.sh prepares the folder of packages.

It is a folder with python.tar.gz (Python, libraries of this machine, and what unpacks the rest), packages.tar.zst.000
and so on (the wheel, what it requires, and CUDA's libraries), and base.json, which says what is in them. pack.py adds
what a commit changes. The folder is named after all that determines its content but the wheel.
"""

from __future__ import annotations

import argparse
import email.parser
import hashlib
import importlib.metadata
import json
import pathlib
import re
import sys
import sysconfig
from collections.abc import Iterable
from collections.abc import Iterator

import archives
import chips
import cuda_libraries
import elf
import machine_libraries
import zeroing

_ROOT = pathlib.Path(__file__).resolve().parent.parent
# A call that takes pieces to a machine may carry 64 MiB, with some other files.
PIECE_BYTES = 55_000_000

# Parts of Python, and of the packages, that no test and no benchmark uses.
_UNUSED_PYTHON = re.compile(
    r"(test|idlelib|tkinter|turtledemo|ensurepip|lib2to3|pydoc_data|site-packages|dist-packages|config-[^/]*)/"
    r"|lib-dynload/(_tkinter|nis|_test\w*|_xx\w*)\.|.*__pycache__/")
UNUSED_PACKAGES = re.compile(
    r"(tensorflow/include|clang|pip|setuptools|jedi|parso|auditwheel|elftools|lz4|nvidia/cuda_nvcc|zstandard"
    r"|tensorboard_data_server|tensorflow_io_gcs_filesystem|nvidia/\w+/include)/|.*__pycache__/|nvidia/.*\.a$")
# What the packing depends on, besides the options and the wheel.
_REQUIREMENTS = ("third_party/python/requirements.txt", "ci/requirements.txt", "gpu_kit/requirements.txt")
_PROGRAMS = ("archives.py", "base_layer.py", "chips.py", "cuda_libraries.py", "elf.py", "fatbin.py",
             "machine_libraries.py", "pieces.py", "zeroing.py")

Files = dict[str, pathlib.Path]


def key(options: Iterable[str]) -> str:
  """Returns the name of the folder: a hash of all that its content depends on, but the wheel.

  Args:
    options: The options of the packing.
  """
  digest = hashlib.sha256("\n".join([sys.version, *options]).encode())
  for path in (*(_ROOT / name for name in _REQUIREMENTS), *(_ROOT / "gpu_kit" / name for name in _PROGRAMS)):
    digest.update(hashlib.sha256(path.read_bytes()).digest())
  return digest.hexdigest()[:16]


def _tree(folder: pathlib.Path, unused: re.Pattern[str]) -> Files:
  """Returns a folder's files by their paths in it, without those that match a pattern."""
  paths = ((path, path.relative_to(folder).as_posix()) for path in sorted(folder.rglob("*")))
  return {name: path for path, name in paths if not unused.match(name) and (path.is_symlink() or path.is_file())}


def _libraries(files: Files) -> Iterator[tuple[str, pathlib.Path]]:
  for name, path in files.items():
    if not path.is_symlink() and elf.is_elf(path):
      yield name, path


def _python() -> Files:
  """Returns this interpreter, with its standard library, as it would be in the folder python/."""
  version = f"python{sys.version_info.major}.{sys.version_info.minor}"
  files = {f"python/bin/{version}": pathlib.Path(sys._base_executable).resolve()}
  standard = pathlib.Path(sysconfig.get_path("stdlib"))
  files |= {f"python/lib/{version}/{name}": path for name, path in _tree(standard, _UNUSED_PYTHON).items()}
  shared = pathlib.Path(sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME") or "")
  if sysconfig.get_config_var("Py_ENABLE_SHARED"):
    files[f"lib/{shared.name}"] = shared
  return files


def _unpacker(packages: pathlib.Path) -> Files:
  """Returns what Python needs to unpack the rest, as it would be in the folder unpacker/."""
  package = _tree(packages / "zstandard", re.compile(".*__pycache__/"))
  files = {f"unpacker/zstandard/{name}": path for name, path in package.items()}
  return files | {f"unpacker/{name}": _ROOT / "gpu_kit" / name for name in ("pieces.py",)}


def _metadata(packages: pathlib.Path, name: str) -> email.message.Message:
  path, = packages.glob(f"{name}-*.dist-info/METADATA")
  return email.parser.Parser().parsestr(path.read_text())


def _versions(packages: pathlib.Path) -> dict[str, str]:
  found = importlib.metadata.distributions(path=[str(packages)])
  return dict(sorted((package.metadata["Name"], package.version) for package in found))


def check_versions(required: Iterable[str], versions: dict[str, str]) -> None:
  """Checks that CUDA's libraries have the versions that the wheel's extra names.

  Args:
    required: The wheel's requirements.
    versions: The packages in the kit.

  Raises:
    ValueError: If the wheel has no such extra, so it is not a CUDA wheel; or if a version differs.
  """
  extra = dict(re.findall(r"^(nvidia-[\w-]+) \(==([\d.]+)\) ; extra == 'and-cuda'$", "\n".join(required), re.M))
  if not extra:
    raise ValueError("the wheel is not a CUDA wheel: build it with ci/build_wheel.sh --config=cuda")
  for name, version in versions.items():
    if name.startswith("nvidia-") and extra.get(name) != version:
      raise ValueError(f"gpu_kit/requirements.txt has {name} {version}, but the wheel requires {extra.get(name)}")


def _cuda(packages: pathlib.Path, stand_ins: set[str]) -> list[str]:
  """Deletes CUDA's libraries that nothing can call, or replaces them where TensorFlow only loads them.

  Args:
    packages: The folder of packages, which is changed.
    stand_ins: The libraries to replace whether something calls them or not, as in "cudnn".

  Returns:
    The names of the stand-ins.

  Raises:
    ValueError: If there is no such library.
  """
  named: set[str] = set()
  for _, path in _libraries(_tree(packages, re.compile("nvidia/"))):
    named |= cuda_libraries.names_in(path)
  libraries = [path for _, path in _libraries(_tree(packages / "nvidia", UNUSED_PACKAGES))]
  known = sorted({path.name.removeprefix("lib").partition(".")[0].partition("_")[0] for path in libraries})
  for name in sorted(stand_ins - set(known)):
    raise ValueError(f'there is no library "{name}" to stand in for: there are {", ".join(known)}')
  reasons = cuda_libraries.callable_libraries(libraries, named)
  empty = []
  for library in libraries:
    # Without libcudnn.so.8, for example, nothing loads libcudnn_ops_infer.so.8 and the others.
    wanted = next((name for name in stand_ins if re.match(rf"lib{name}(_\w+)?\.so", library.name)), None)
    if wanted is None and library in reasons:
      print(f"  {library.name}: {reasons[library]}")
    elif cuda_libraries.is_required(library):
      print(f"  {library.name}: an empty stand-in")
      cuda_libraries.write_stand_in(library)
      empty.append(library.name)
    else:
      print(f"  {library.name}: left out, " + ("as its stand-in loads nothing" if wanted else "nothing names it"))
      library.unlink()
  return empty


def _shrink(packages: pathlib.Path, target: list[chips.Chip]) -> dict[str, list[list[str]]]:
  """Zeroes the GPU code of other chips, and symbols that only debuggers read.

  Returns:
    For each library with GPU code, all combinations of code that its containers kept.
  """
  code = {}
  for _, path in _libraries(_tree(packages, UNUSED_PACKAGES)):
    elf.zero_symbol_tables(path)
    try:
      kept = zeroing.keep_only(path, target)
    except ValueError as error:
      raise ValueError(f"{path}: {error}") from error
    if not kept.containers:
      continue
    code[path.name] = [[str(each) for each in combination] for combination in sorted(kept.containers) if combination]
    counts = ", ".join(
        f"{count} x {' + '.join(map(str, combination)) or 'nothing'}" for combination, count in kept.containers.items())
    print(f"  {path.name}: {kept.before / 1e6:,.1f} MB of GPU code, {kept.after / 1e6:,.1f} MB kept: {counts}")
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


def _pack(arguments: argparse.Namespace) -> None:
  packages, out = arguments.packages, arguments.out
  versions = _versions(packages)
  check_versions(_metadata(packages, "tensorflow").get_all("Requires-Dist", []), versions)

  print("CUDA's libraries:")
  stand_ins = _cuda(packages, set(arguments.stand_in))
  print("GPU code:")
  code = _shrink(packages, arguments.chip)
  check_native(code, arguments.chip)

  python = _python() | _unpacker(packages)
  rest = {f"packages/{name}": path for name, path in _tree(packages, UNUSED_PACKAGES).items()}
  needs = machine_libraries.Needs(path for _, path in _libraries({**python, **rest}))
  python |= {f"lib/{name}": path for name, path in needs.libraries.items()}

  print("Packing:", flush=True)
  out.mkdir(parents=True)
  import pieces  # Only this environment has zstandard.

  archives.write(out / "python.tar.gz", python)
  paths = [out / "python.tar.gz"]
  paths += pieces.pack(rest.items(), out, "packages.tar.zst.", PIECE_BYTES, level=arguments.level)
  for path in paths:
    print(f"  {path.name}: {path.stat().st_size:,} bytes")
  about = {
      "wheel": archives.record_of(arguments.wheel),
      "chips": [str(chip) for chip in arguments.chip],
      "glibc": ".".join(map(str, needs.glibc)),
      "stand_ins": stand_ins,
      "code": code,
      "packages": versions,
      "pieces": [path.name for path in paths],
      "bytes": sum(path.stat().st_size for path in [*python.values(), *rest.values()]),
  }
  # The last file: the folder is whole if it is there.
  (out / "base.json").write_text(json.dumps(about, indent=2) + "\n")


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--key", action="store_true", help="only print the name of the folder")
  parser.add_argument("--packages", type=pathlib.Path, help="the folder of packages, which is changed")
  parser.add_argument("--wheel", type=pathlib.Path, help="the wheel in it")
  parser.add_argument("--out", type=pathlib.Path, help="the folder to write")
  parser.add_argument("--chip", type=chips.parse_chip, action="append",
                      help="as sm_90, the default; several are possible")
  parser.add_argument("--stand-in", action="append", default=[], metavar="NAME",
                      help="cudnn, for example: leave this library out, so that ops that need it fail")
  parser.add_argument("--level", type=int, default=19, help="how hard zstd tries, 1 to 22")
  arguments = parser.parse_args()
  arguments.chip = arguments.chip or [chips.Chip(9, 0)]
  if arguments.key:
    print(key([*map(str, arguments.chip), *sorted(arguments.stand_in), str(arguments.level)]))
    return 0
  try:
    _pack(arguments)
  except ValueError as error:
    print(f"error: {error}", file=sys.stderr)
    return 1
  return 0


if __name__ == "__main__":
  sys.exit(main())
