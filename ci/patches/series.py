# SPDX-License-Identifier: Apache-2.0
"""The series of patches over TensorFlow's tree: apply, check, edit, refresh.

`patches/series` alone gives the order. docs/rebasing.md says when to use what.
"""

from __future__ import annotations

import argparse
import contextlib
import filecmp
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from collections.abc import Iterator

import patch_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
_C_LOCALE = {**os.environ, "LC_ALL": "C"}


class SeriesError(Exception):
  """The series cannot be applied, or breaks a rule; says which patch and why."""


class Series:
  """The patches of a folder, in order."""

  def __init__(self, folder: pathlib.Path):
    """Reads the series.

    Args:
      folder: holds `series` and the patches.

    Raises:
      SeriesError: the list and the folder disagree, or a patch is unreadable.
    """
    self.folder = folder
    lines = (folder / "series").read_text().splitlines()
    self.names = [line for line in lines if line and not line.startswith("#")]
    twice = sorted({n for n in self.names if self.names.count(n) > 1})
    present = {path.name for path in folder.glob("*.patch")}
    unlisted = sorted(present - set(self.names))
    missing = sorted(set(self.names) - present)
    for what, names in (
        ("listed twice in series", twice),
        ("not listed in series", unlisted),
        ("listed in series, but no such file", missing),
    ):
      if names:
        raise SeriesError(f"{what}: {', '.join(names)}")
    for name in self.names:
      self.patch(name)

  def path(self, name: str) -> pathlib.Path:
    return self.folder / name

  def patch(self, name: str) -> patch_file.Patch:
    """The patch as it is on disk now."""
    try:
      return patch_file.parse(name, self.path(name).read_text())
    except patch_file.PatchError as error:
      raise SeriesError(str(error)) from error

  def position(self, name: str) -> int:
    """The index of a patch; SeriesError if there is none of that name."""
    if name not in self.names:
      raise SeriesError(f"{name} is not in {self.folder / 'series'}")
    return self.names.index(name)

  def touched(self, names: Iterable[str] | None = None) -> set[str]:
    """The upstream files that the named patches, or all, change."""
    chosen = self.names if names is None else names
    return {path for name in chosen for path in self.patch(name).paths}


def apply(series: Series, tree: pathlib.Path, through: str | None = None) -> None:
  """Applies the series to a pristine tree, in place.

  Args:
    series: the series.
    tree: a pristine tree.
    through: the last patch to apply; all of them if None.

  Raises:
    SeriesError: a patch does not apply exactly; those before it are applied.
  """
  end = len(series.names) if through is None else series.position(through) + 1
  for name in series.names[:end]:
    _apply_one(series, name, tree)


def _apply_one(
    series: Series, name: str, tree: pathlib.Path, *, allow_offset: bool = False
) -> None:
  """Applies one patch to a tree, in place.

  Args:
    series: the series.
    name: the patch. One with a header alone, as a new one, applies to any tree.
    tree: changed in place.
    allow_offset: whether a hunk may have moved. Fuzz is never allowed.

  Raises:
    SeriesError: the patch does not apply like that.
  """
  if not series.patch(name).files:
    return
  done = subprocess.run(
      ["patch", "--strip=1", "--fuzz=0", "--forward", "--batch",
       "--no-backup-if-mismatch", f"--directory={tree}",
       f"--input={series.path(name).resolve()}"],
      capture_output=True, text=True, env=_C_LOCALE, check=False,
  )
  output = done.stdout + done.stderr
  if done.returncode or "fuzz" in output:
    raise SeriesError(f"{name} does not apply:\n{output.rstrip()}")
  if "offset" in output and not allow_offset:
    raise SeriesError(f"{name} applies only with an offset:\n{output.rstrip()}")


def check_rules(series: Series, root: pathlib.Path) -> str:
  """Checks all that needs no upstream source.

  Args:
    series: the series.
    root: the project's root folder.

  Returns:
    A line that gives the number of patches and their size.

  Raises:
    SeriesError: the broken rules, one a line.
  """
  patches = [series.patch(name) for name in series.names]
  problems = [
      f"{patch.name}: {problem}"
      for patch in patches
      for problem in patch_file.problems(patch, root)
  ]
  if problems:
    raise SeriesError("\n".join(problems))
  files = series.touched()
  lines = sum(patch.changed_lines for patch in patches)
  return (
      f"{len(patches)} patches change {lines} lines in {len(files)} upstream"
      " files"
  )


def check_source(series: Series, pristine: pathlib.Path) -> str:
  """Checks that each patch applies exactly and is written as refresh writes it.

  Args:
    series: the series.
    pristine: TensorFlow's tree, or an archive of it.

  Returns:
    A line that says so.

  Raises:
    SeriesError: a patch does not apply exactly, or is not in refresh's form.
  """
  with _copy_of(pristine, series.touched()) as tree:
    for name in series.names:
      written = series.path(name).read_text()
      if _applied(series, name, tree) != written:
        raise SeriesError(
            f"{name} is not written as 'ci/patches.sh refresh' writes it"
        )
  return f"each applies to {pristine.name} with no offset and no fuzz"


def edit(series: Series, name: str, tree: pathlib.Path) -> None:
  """Prepares a pristine tree for changing one patch.

  Args:
    series: the series.
    name: the patch to change.
    tree: pristine; afterwards it holds the series up to and including `name`,
      to be edited and given to `refresh`.

  Raises:
    SeriesError: an earlier patch does not apply exactly, or this one not at
      all: then what applies of it is in the tree, the rest in *.rej files.
  """
  for earlier in series.names[: series.position(name)]:
    _apply_one(series, earlier, tree)
  _apply_one(series, name, tree, allow_offset=True)


def refresh(
    series: Series,
    pristine: pathlib.Path,
    name: str | None = None,
    edited: pathlib.Path | None = None,
) -> list[str]:
  """Writes patches anew; headers stay, and the same input gives the same bytes.

  Args:
    series: the series.
    pristine: TensorFlow's tree; with `name`, a folder.
    name: the patch that `edited` changes. Later patches are fitted to it.
    edited: the tree that `edit` prepared, with the maintainer's changes. None,
      as `name`: every patch is written anew where its lines are now.

  Returns:
    The names of the patches whose bytes changed.

  Raises:
    SeriesError: a patch no longer applies (those before it are written), or
      the edit adds a file or changes nothing.
  """
  first = 0
  paths = series.touched()
  if name is not None and edited is not None:
    first = series.position(name)
    paths |= _differing(pristine, edited)
  changed = []
  with _copy_of(pristine, paths) as tree:
    for current in series.names[:first]:
      _apply_one(series, current, tree)
    for current in series.names[first:]:
      path = series.path(current)
      if current == name:
        text = _taken_from(edited, series, current, tree, paths)
      else:
        text = _applied(series, current, tree, allow_offset=True)
      if text != path.read_text():
        path.write_text(text)
        changed.append(current)
  return changed


def _applied(
    series: Series, name: str, tree: pathlib.Path, *, allow_offset: bool = False
) -> str:
  """Applies a patch to `tree` and gives its text as the tree then implies."""
  paths = series.touched([name])
  with _copy_of(tree, paths) as before:
    _apply_one(series, name, tree, allow_offset=allow_offset)
    return series.patch(name).header + _diff(before, tree, paths)


def _taken_from(
    edited: pathlib.Path,
    series: Series,
    name: str,
    tree: pathlib.Path,
    paths: set[str],
) -> str:
  """The text of a patch that turns `tree` into `edited`; `tree` follows."""
  body = _diff(tree, edited, paths)
  if not body:
    raise SeriesError(f"{name} would change nothing: delete it from the series")
  for path in paths:
    shutil.copyfile(edited / path, tree / path)
  return series.patch(name).header + body


def _diff(old: pathlib.Path, new: pathlib.Path, paths: Iterable[str]) -> str:
  """The unified diff of the given files, by name, without dates."""
  diffs = []
  for path in sorted(paths):
    done = subprocess.run(
        ["diff", f"--unified={patch_file.CONTEXT}", f"--label=a/{path}",
         f"--label=b/{path}", old / path, new / path],
        capture_output=True, text=True, env=_C_LOCALE, check=False,
    )
    if done.returncode > 1:
      raise SeriesError(f"{path}: {done.stderr.rstrip()}")
    diffs.append(done.stdout)
  return "".join(diffs)


def _differing(pristine: pathlib.Path, edited: pathlib.Path) -> set[str]:
  """The files that differ between two trees; SeriesError for an added one."""
  differing = set()
  for folder, _, names in os.walk(edited):
    for name in names:
      path = pathlib.Path(folder, name).relative_to(edited)
      if not (pristine / path).exists():
        raise SeriesError(
            f"{path} is not upstream's: a patch adds no file. Put it under"
            " tensorflow_staging/, or delete it"
        )
      if not filecmp.cmp(pristine / path, edited / path):
        differing.add(str(path))
  return differing


@contextlib.contextmanager
def _copy_of(source: pathlib.Path, paths: set[str]) -> Iterator[pathlib.Path]:
  """A temporary tree with the given files of a tree or of an archive of one."""
  with tempfile.TemporaryDirectory() as folder:
    copy = pathlib.Path(folder)
    for path in paths:
      (copy / path).parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
      for path in paths:
        with contextlib.suppress(FileNotFoundError):
          shutil.copyfile(source / path, copy / path)
    else:
      _extract(source, paths, copy)
    missing = sorted(path for path in paths if not (copy / path).is_file())
    if missing:
      raise SeriesError(f"{source.name} has no {', '.join(missing)}")
    yield copy


def _extract(
    archive: pathlib.Path, paths: set[str], folder: pathlib.Path
) -> None:
  """Copies files out of an archive whose names start with one folder more."""
  with tarfile.open(archive) as tar:
    for member in tar:
      path = member.name.partition("/")[2]
      content = tar.extractfile(member) if path in paths else None
      if content is not None:
        (folder / path).write_bytes(content.read())


def find_pristine() -> pathlib.Path | None:
  """TensorFlow's tree as Bazel has fetched it; None if it has not."""
  with contextlib.suppress(OSError):
    done = subprocess.run(
        ["bazel", "--noblock_for_lock", "info", "output_base"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )
    tree = pathlib.Path(done.stdout.strip(), "external/tensorflow_source")
    if not done.returncode and tree.is_dir():
      return tree
  return None


def _arguments(argv: list[str]) -> argparse.Namespace:
  """Parses the command line."""
  parser = argparse.ArgumentParser(prog="ci/patches.sh", description=__doc__)
  commands = parser.add_subparsers(dest="command", required=True)
  tree = {"type": pathlib.Path, "metavar": "TREE"}
  command = commands.add_parser("apply", help="apply the series to a tree")
  command.add_argument("tree", **tree)
  command = commands.add_parser("check", help="check the rules and the source")
  command.add_argument(
      "pristine", nargs="?", type=pathlib.Path, metavar="PRISTINE",
      help="TensorFlow's tree or archive; by default the one Bazel has",
  )
  command = commands.add_parser("edit", help="prepare a tree for one patch")
  command.add_argument("name", metavar="NAME")
  command.add_argument("tree", help="pristine", **tree)
  command = commands.add_parser("refresh", help="write patches anew")
  command.add_argument("pristine", type=pathlib.Path, metavar="PRISTINE")
  command.add_argument(
      "edited", nargs="*", metavar="NAME TREE",
      help="the patch to take from the tree that edit prepared",
  )
  arguments = parser.parse_args(argv)
  if arguments.command == "refresh" and len(arguments.edited) not in (0, 2):
    parser.error("refresh takes NAME and TREE together, or neither")
  return arguments


def main(argv: list[str]) -> int:
  """Runs one command; returns the exit status."""
  arguments = _arguments(argv)
  try:
    series = Series(ROOT / "patches")
    if arguments.command == "apply":
      apply(series, arguments.tree)
    elif arguments.command == "edit":
      edit(series, arguments.name, arguments.tree)
    elif arguments.command == "refresh":
      name, tree = arguments.edited or (None, None)
      edited = pathlib.Path(tree) if tree else None
      for changed in refresh(series, arguments.pristine, name, edited):
        print(f"wrote {changed}")
    else:
      print(check_rules(series, ROOT))
      pristine = arguments.pristine or find_pristine()
      if pristine is None:
        print("not tried against TensorFlow's tree: Bazel has not fetched it")
      else:
        print(check_source(series, pristine))
  except SeriesError as error:
    print(error, file=sys.stderr)
    return 1
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
