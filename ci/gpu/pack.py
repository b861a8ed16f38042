# SPDX-License-Identifier: Apache-2.0
"""Packs the kit for a machine with a GPU; pack.sh prepares the folder of packages and calls this program.

The kit is a folder: start.tar.gz (Python and the scripts), kit.tar.xz.000 and so on (all else), and manifest.txt, whose
first line says what the kit is, and whose other lines are those of sha256sum.
"""

from __future__ import annotations

import argparse
import email.parser
import importlib.metadata
import json
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable
from collections.abc import Iterator

import chips
import cuda_libraries
import elf
import fatbin
import machine_libraries
import pieces

_ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
_PIECE_BYTES = 55_000_000

# Parts of Python, and of the packages, that no test and no benchmark uses.
_UNUSED_PYTHON = re.compile(
    r"(test|idlelib|tkinter|turtledemo|ensurepip|lib2to3|pydoc_data|site-packages|dist-packages|config-[^/]*)/"
    r"|lib-dynload/(_tkinter|nis|_test\w*|_xx\w*)\.|.*__pycache__/")
_UNUSED_PACKAGES = re.compile(
    r"(tensorflow/include|clang|pip|tensorboard_data_server|tensorflow_io_gcs_filesystem|nvidia/\w+/include)/"
    r"|.*__pycache__/|nvidia/.*\.a$")
# Of the repository, all that the tests and benchmarks need, and the scripts. Python's own files are beside these.
_REPOSITORY = ("ci", "benchmarks", "conftest.py", "modelzoo", "pyproject.toml", "tensorflow_staging/python")

Files = dict[str, pathlib.Path]


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


def _repository() -> Files:
  """Returns the files of the repository that the kit needs, also those that git does not know yet."""
  command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *_REPOSITORY]
  listed = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
  return {name: _ROOT / name for name in sorted(set(listed) - {""}) if (_ROOT / name).is_file()}


def _commit() -> str:
  command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
  return subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout.strip()


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
      raise ValueError(f"ci/gpu/requirements.txt has {name} {version}, but the wheel requires {extra.get(name)}")


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
  libraries = [path for _, path in _libraries(_tree(packages / "nvidia", _UNUSED_PACKAGES))]
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
  for _, path in _libraries(_tree(packages, _UNUSED_PACKAGES)):
    elf.zero_symbol_tables(path)
    try:
      kept = fatbin.keep_only(path, target)
    except ValueError as error:
      raise ValueError(f"{path}: {error}") from error
    if not kept.containers:
      continue
    code[path.name] = [[str(each) for each in combination] for combination in sorted(kept.containers) if combination]
    counts = ", ".join(
        f"{count} x {' + '.join(map(str, combination)) or 'nothing'}" for combination, count in kept.containers.items())
    print(f"  {path.name}: {kept.before / 1e6:,.1f} MB of GPU code, {kept.after / 1e6:,.1f} MB kept: {counts}")
  return code


def _write_start(path: pathlib.Path, files: Files) -> None:
  def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info

  with tarfile.open(path, "w:gz", compresslevel=6, dereference=True) as archive:
    for name, file in sorted(files.items()):
      archive.add(file, name, recursive=False, filter=plain)


def _pack(arguments: argparse.Namespace) -> None:
  packages, kit = arguments.packages, arguments.kit
  versions = _versions(packages)
  check_versions(_metadata(packages, "tensorflow").get_all("Requires-Dist", []), versions)

  print("CUDA's libraries:")
  stand_ins = _cuda(packages, set(arguments.stand_in))
  print("GPU code:")
  code = _shrink(packages, arguments.chip)

  start = _python()
  rest = {f"packages/{name}": path for name, path in _tree(packages, _UNUSED_PACKAGES).items()}
  needs = machine_libraries.Needs(path for _, path in _libraries({**start, **rest}))
  start |= {f"lib/{name}": path for name, path in needs.libraries.items()}
  start |= _repository()
  about = {
      "tensorflow": versions["tensorflow"],
      "commit": _commit(),
      "chips": [str(chip) for chip in arguments.chip],
      "glibc": ".".join(map(str, needs.glibc)),
      "stand_ins": stand_ins,
      "code": code,
      "packages": versions,
      "bytes": sum(path.stat().st_size for path in [*start.values(), *rest.values()]),
  }
  about_path = packages.parent / "kit.json"
  about_path.write_text(json.dumps(about, indent=2) + "\n")
  start["kit.json"] = about_path

  print("Packing:")
  shutil.rmtree(kit, ignore_errors=True)
  kit.mkdir(parents=True)
  _write_start(kit / "start.tar.gz", start)
  paths = [kit / "start.tar.gz", *pieces.pack(rest.items(), kit, "kit.tar.xz.", _PIECE_BYTES, preset=arguments.preset)]
  title = (f"# GPU kit 1: tensorflow {about['tensorflow']}, commit {about['commit']}, for {' '.join(about['chips'])},"
           f" glibc {about['glibc']}, {about['bytes'] / 1e9:.1f} GB unpacked")
  lines = [title, *(f"{pieces.sha256(path)}  {path.name}" for path in paths)]
  (kit / "manifest.txt").write_text("\n".join(lines) + "\n")
  for path in paths:
    print(f"  {path.name}: {path.stat().st_size:,} bytes")
  print(f"{kit}: {sum(path.stat().st_size for path in paths) / 1e6:,.0f} MB in {len(paths)} pieces\n{title[2:]}")


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--packages", type=pathlib.Path, required=True, help="the folder of packages, which is changed")
  parser.add_argument("--kit", type=pathlib.Path, required=True, help="the folder to write")
  parser.add_argument("--chip", type=chips.parse_chip, action="append",
                      help="as sm_90, the default; several are possible")
  parser.add_argument("--stand-in", action="append", default=[], metavar="NAME",
                      help="cudnn, for example: leave this library out, so that ops that need it fail")
  parser.add_argument("--preset", type=int, default=6, help="how hard lzma tries, 0 to 9")
  arguments = parser.parse_args()
  arguments.chip = arguments.chip or [chips.Chip(9, 0)]
  try:
    _pack(arguments)
  except ValueError as error:
    print(f"error: {error}", file=sys.stderr)
    return 1
  return 0


if __name__ == "__main__":
  sys.exit(main())
