# SPDX-License-Identifier: Apache-2.0
"""Packs the kit for a machine with a GPU from its base, which base_layer.py makes, and what a commit changes of it.

The kit is a folder: run.sh, which runs it; the pieces of the base; commit.tar.gz, with the files of the wheel that are
not as in the base, the tests and the benchmarks; and manifest.txt, whose first line says what the kit is, and whose
other lines are those of sha256sum.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import archives
import base_layer
import launch

_ROOT = base_layer._ROOT

# Of the repository, all that the tests and benchmarks need, and the scripts. Python's own files are beside these.
_REPOSITORY = ("benchmarks", "ci", "conftest.py", "gpu_kit", "modelzoo", "pyproject.toml", "tensorflow_staging/python")
# The exit status that asks for a new base.
_NEEDS_BASE = 3
# The most bytes of the wheel that may differ from the base, unpacked. They pack to about a third.
_MOST_BYTES = 120_000_000


class Changes:
  """What differs between a wheel and the one in the base.

  Args:
    old: The hash of each file of the wheel in the base.
    new: That of each file of the wheel.

  Attributes:
    changed: The files that are new or differ.
    removed: The files of the base that the wheel does not have.
  """

  def __init__(self, old: dict[str, str], new: dict[str, str]):
    used = lambda name: not base_layer.UNUSED_PACKAGES.match(name)
    # RECORD has no hash of its own.
    differs = lambda name: not new[name] or old.get(name) != new[name]
    self.changed = sorted(name for name in new if used(name) and differs(name))
    self.removed = sorted(name for name in old if used(name) and name not in new)


def _repository() -> base_layer.Files:
  """Returns the files of the repository that the kit needs, also those that git does not know yet."""
  command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *_REPOSITORY]
  listed = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
  return {name: _ROOT / name for name in sorted(set(listed) - {""}) if (_ROOT / name).is_file()}


def _commit() -> str:
  command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
  return subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _pack(arguments: argparse.Namespace) -> int:
  base = json.loads((arguments.base / "base.json").read_text())
  changes = Changes(base["wheel"], archives.record_of(arguments.wheel))
  with zipfile.ZipFile(arguments.wheel) as wheel:
    size = sum(wheel.getinfo(name).file_size for name in changes.changed)
    if size > _MOST_BYTES:
      print(f"{size / 1e6:,.0f} MB of the wheel are not as in the base {arguments.base}: it is packed anew.")
      return _NEEDS_BASE
    files: dict[str, pathlib.Path | bytes] = {f"packages/{name}": wheel.read(name) for name in changes.changed}
    version = re.search(r"^Version: (.*)$", wheel.read(_metadata_of(wheel)).decode(), re.MULTILINE)[1]
  files |= _repository()
  about = {**base, "tensorflow": version, "commit": _commit(), }
  del about["wheel"]
  files["removed.txt"] = "".join(f"packages/{name}\n" for name in changes.removed).encode()
  files["kit.json"] = (json.dumps(about, indent=2) + "\n").encode()

  kit = arguments.kit
  shutil.rmtree(kit, ignore_errors=True)
  kit.mkdir(parents=True)
  with launch.built() as program:
    archives.write(kit / "commit.tar.gz", {**files, "bin/launch": program})
  paths = [kit / "commit.tar.gz"]
  if paths[0].stat().st_size > base_layer.PIECE_BYTES:
    print(f"{paths[0].name} has {paths[0].stat().st_size:,} bytes: the base is packed anew.")
    return _NEEDS_BASE
  for name in base["pieces"]:
    paths.append(kit / name)
    os.link(arguments.base / name, paths[-1])
  shutil.copy(_ROOT / "gpu_kit/run.sh", kit / "run.sh")
  title = (f"# GPU kit 2: tensorflow {version}, commit {about['commit']}, for {' '.join(about['chips'])},"
           f" glibc {about['glibc']}, {about['bytes'] / 1e9:.1f} GB unpacked")
  lines = [title, *(f"{archives.sha256(path)}  {path.name}" for path in paths)]
  (kit / "manifest.txt").write_text("\n".join(lines) + "\n")
  for path in paths:
    print(f"  {path.name}: {path.stat().st_size:,} bytes")
  print(f"{kit}: {sum(path.stat().st_size for path in paths) / 1e6:,.0f} MB in {len(paths)} pieces\n{title[2:]}")
  return 0


def _metadata_of(wheel: zipfile.ZipFile) -> str:
  return next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--base", type=pathlib.Path, required=True, help="the folder of the base")
  parser.add_argument("--wheel", type=pathlib.Path, required=True, help="a CUDA wheel")
  parser.add_argument("--kit", type=pathlib.Path, required=True, help="the folder to write")
  try:
    return _pack(parser.parse_args())
  except ValueError as error:
    print(f"error: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
  sys.exit(main())
