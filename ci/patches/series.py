# SPDX-License-Identifier: Apache-2.0
"""Applies, checks, edits and refreshes the series of patches over TensorFlow's tree.

`patches/series` gives the order of the patches. docs/rebasing.md says when to use which command.
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
  """The series cannot be applied, or breaks a rule; the message names the patch and the problem."""


class Series:
  """The patches of a folder, in order."""

  def __init__(self, folder: pathlib.Path):
    """Reads the series.

    Args:
      folder: The folder with the file `series` and the patches.

    Raises:
      SeriesError: If `series` and the folder disagree, or a patch is unreadable.
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
        ("listed in series, but not in the folder", missing),
    ):
      if names:
        raise SeriesError(f"{what}: {', '.join(names)}")
    for name in self.names:
      self.patch(name)

  def path(self, name: str) -> pathlib.Path:
    return self.folder / name

  def patch(self, name: str) -> patch_file.Patch:
    """Reads a patch from the disk; raises SeriesError if it is unreadable."""
    try:
      return patch_file.parse(name, self.path(name).read_text())
    except patch_file.PatchError as error:
      raise SeriesError(str(error)) from error

  def position(self, name: str) -> int:
    """Returns the index of a patch; raises SeriesError if the series has no patch of that name."""
    if name not in self.names:
      raise SeriesError(f"{name} is not in {self.folder / 'series'}")
    return self.names.index(name)

  def touched(self, names: Iterable[str] | None = None) -> set[str]:
    """Returns the upstream files that the named patches change, or all patches if `names` is None."""
    chosen = self.names if names is None else names
    return {path for name in chosen for path in self.patch(name).paths}


def apply(series: Series, tree: pathlib.Path, through: str | None = None) -> None:
  """Applies the series to a pristine tree, in place.

  Args:
    series: The series.
    tree: A pristine tree.
    through: The last patch to apply; None means the last of the series.

  Raises:
    SeriesError: If a patch does not apply exactly. The patches before it have been applied.
  """
  end = len(series.names) if through is None else series.position(through) + 1
  for name in series.names[:end]:
    _apply_one(series, name, tree)


def _apply_one(
    series: Series, name: str, tree: pathlib.Path, *, allow_offset: bool = False
) -> None:
  """Applies one patch to a tree, in place.

  Args:
    series: The series.
    name: The patch. A patch that has only a header, such as a new one, applies to any tree.
    tree: The tree.
    allow_offset: Whether hunks may have moved. Fuzz is never allowed.

  Raises:
    SeriesError: If the patch does not apply under these conditions.
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
  """Checks the rules that need no upstream source.

  Args:
    series: The series.
    root: The project's root folder.

  Returns:
    A line with the number of patches and their size.

  Raises:
    SeriesError: If patches break rules; the message has one line for each problem.
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
  """Checks that each patch applies exactly and is written as `refresh` writes it.

  Args:
    series: The series.
    pristine: TensorFlow's tree, or an archive of it.

  Returns:
    A line that confirms it.

  Raises:
    SeriesError: If a patch does not apply exactly, or `refresh` would write it differently.
  """
  with _copy_of(pristine, series.touched()) as tree:
    for name in series.names:
      written = series.path(name).read_text()
      if _applied(series, name, tree) != written:
        raise SeriesError(
            f"{name} is not written as 'ci/patches.sh refresh' writes it"
        )
  return f"each patch applies to {pristine.name} with no offset and no fuzz"


def edit(series: Series, name: str, tree: pathlib.Path) -> None:
  """Prepares a pristine tree for changing one patch.

  Args:
    series: The series.
    name: The patch to change.
    tree: A pristine tree. This function applies the series up to and including `name`; the maintainer then edits the
      tree and gives it to `refresh`.

  Raises:
    SeriesError: If an earlier patch does not apply exactly, or if this patch does not apply even with an offset. In
      the second case the tree has the hunks that apply, and *.rej files have the others.
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
  """Rewrites patches for the lines of a tree. Headers stay, and the same input gives the same bytes.

  Args:
    series: The series.
    pristine: TensorFlow's tree, or an archive of it if `name` is None.
    name: The patch that `edited` changes; the later patches are adapted to it. None, together with `edited`, adapts
      every patch to `pristine`.
    edited: The tree that `edit` prepared, with the maintainer's changes.

  Returns:
    The names of the patches whose bytes changed.

  Raises:
    SeriesError: If a patch no longer applies (the patches before it have been written), or if the edit adds a file or
      changes nothing.
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
        text = _edited_text(edited, series, current, tree, paths)
      else:
        text = _applied(series, current, tree, allow_offset=True)
      if text != path.read_text():
        path.write_text(text)
        changed.append(current)
  return changed


def _applied(
    series: Series, name: str, tree: pathlib.Path, *, allow_offset: bool = False
) -> str:
  """Applies a patch to `tree`, and returns its text for the lines at which it applied."""
  paths = series.touched([name])
  with _copy_of(tree, paths) as before:
    _apply_one(series, name, tree, allow_offset=allow_offset)
    return series.patch(name).header + _diff(before, tree, paths)


def _edited_text(
    edited: pathlib.Path,
    series: Series,
    name: str,
    tree: pathlib.Path,
    paths: set[str],
) -> str:
  """Turns `tree` into `edited`, and returns the text of the patch that does so."""
  body = _diff(tree, edited, paths)
  if not body:
    raise SeriesError(f"{name} would change nothing: delete it from the series")
  for path in paths:
    shutil.copyfile(edited / path, tree / path)
  return series.patch(name).header + body


def _diff(old: pathlib.Path, new: pathlib.Path, paths: Iterable[str]) -> str:
  """Returns the unified diffs of the given files, sorted by name, without dates."""
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
  """Returns the files that differ between two trees; raises SeriesError if one was added."""
  differing = set()
  for folder, _, names in os.walk(edited):
    for name in names:
      path = pathlib.Path(folder, name).relative_to(edited)
      if not (pristine / path).exists():
        raise SeriesError(
            f"{path} is not an upstream file, and a patch must not add files: move"
            " it below tensorflow_staging/, or delete it"
        )
      if not filecmp.cmp(pristine / path, edited / path):
        differing.add(str(path))
  return differing


@contextlib.contextmanager
def _copy_of(source: pathlib.Path, paths: set[str]) -> Iterator[pathlib.Path]:
  """Copies the given files of a tree, or of an archive of a tree, to a temporary tree."""
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
  """Copies files out of an archive, whose names have one more leading folder than `paths`."""
  with tarfile.open(archive) as tar:
    for member in tar:
      path = member.name.partition("/")[2]
      content = tar.extractfile(member) if path in paths else None
      if content is not None:
        (folder / path).write_bytes(content.read())


def find_pristine() -> pathlib.Path | None:
  """Returns TensorFlow's tree as Bazel fetched it, or None if Bazel has not fetched it."""
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
  """Parses the command line; exits with a message if it is wrong."""
  parser = argparse.ArgumentParser(prog="ci/patches.sh", description=__doc__)
  commands = parser.add_subparsers(dest="command", required=True)
  tree = {"type": pathlib.Path, "metavar": "TREE"}
  command = commands.add_parser("apply", help="apply the series to a tree")
  command.add_argument("tree", **tree)
  command = commands.add_parser("check", help="check the rules and the source")
  command.add_argument(
      "pristine", nargs="?", type=pathlib.Path, metavar="PRISTINE",
      help="TensorFlow's tree or archive; by default the tree that Bazel fetched",
  )
  command = commands.add_parser("edit", help="prepare a tree for one patch")
  command.add_argument("name", metavar="NAME")
  command.add_argument("tree", help="a pristine tree", **tree)
  command = commands.add_parser("refresh", help="rewrite patches for a tree")
  command.add_argument("pristine", type=pathlib.Path, metavar="PRISTINE")
  command.add_argument(
      "edited", nargs="*", metavar="NAME TREE",
      help="a patch, and the edited tree that it is to produce",
  )
  arguments = parser.parse_args(argv)
  if arguments.command == "refresh" and len(arguments.edited) not in (0, 2):
    parser.error("refresh takes NAME and TREE together, or neither")
  return arguments


def main(argv: list[str]) -> int:
  """Runs one command and returns the exit status."""
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
        print("not checked against TensorFlow's tree: Bazel has not fetched it")
      else:
        print(check_source(series, pristine))
  except SeriesError as error:
    print(error, file=sys.stderr)
    return 1
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
