# SPDX-License-Identifier: Apache-2.0
"""Tests that design.md names what exists: its files, every patch, and which folders use which."""

import pathlib
import re

_FOLDER = pathlib.Path(__file__).parent
_TEXT = (_FOLDER / "design.md").read_text()
_ROOT = _FOLDER.parent
_CORE = _ROOT / "tensorflow_staging/core"

# A path of a file or folder in backquotes.
_PATH = re.compile(r"`([\w/.]+(?:\.(?:cc|h|py|md|proto)|/))`")

# A file that holds a lock.
_LOCK = re.compile(
    r"^ *(?:mutable |static )?mutex \w+(?:;|\s+TF_)|= new mutex;|= threading\.(?:Lock|RLock|Condition)\(", re.MULTILINE)


def _whole(path: str) -> pathlib.Path:
  """The place of a path, by the rule at the page's beginning."""
  if path.startswith("python/"):
    return _ROOT / "tensorflow_staging" / path
  first = path.split("/")[0]
  return _ROOT / path if (_ROOT / first).is_dir() and not (_CORE / first).is_dir() else _CORE / path


def test_named_files_exist():
  paths = set(_PATH.findall(_TEXT))
  assert len(paths) > 100
  assert [path for path in sorted(paths) if "/" not in path or not _whole(path).exists()] == []


def test_every_lock_has_a_row():
  table = _TEXT.partition("\n## Locks")[2].partition("\n## ")[0]
  listed = re.findall(r"^\| `[\w.:]+` \| `([\w/.]+)` \|", table, re.MULTILINE)
  files = [path for folder in (_CORE, _CORE.parent / "python") for path in folder.rglob("*")
           if path.suffix in (".cc", ".h", ".py") and not re.search(r"_test\.|/testing/", path.as_posix())]
  holders = [path for path in files if _LOCK.search(path.read_text())]
  assert sorted({_whole(path) for path in listed}) == sorted(holders)


def test_every_patch_is_listed_once():
  listed = re.findall(r"^\| `([\w-]+)` \|", _TEXT.partition("## What each patch hooks")[2], re.MULTILINE)
  series = (_ROOT / "patches/series").read_text().splitlines()
  assert sorted(listed) == sorted(line.removesuffix(".patch") for line in series if not line.startswith("#"))


def _used_folders() -> dict[str, list[str]]:
  """The folders that design.md lists, in its order, and those that each of them uses."""
  table = _TEXT.partition("## Which folder uses which")[2].partition("\n## ")[0]
  return {folder: re.findall(r"`([\w/]+)/`", uses)
          for folder, uses in re.findall(r"^\| `([\w/]+)/` \|(.*)\|$", table, re.MULTILINE)}


def _included_folders() -> dict[str, set[str]]:
  """The folders of `core/` that have code, and those whose headers their code includes."""
  included: dict[str, set[str]] = {}
  for path in sorted(_CORE.rglob("*.cc")) + sorted(_CORE.rglob("*.h")):
    folder = path.parent.relative_to(_CORE).as_posix()
    if path.name.endswith("_test.cc") or folder.split("/")[0] == "testing":
      continue
    found = re.findall(r'^#include "tensorflow_staging/core/([\w/]+)/\w+[.]', path.read_text(), re.MULTILINE)
    included.setdefault(folder, set()).update(set(found) - {folder})
  return included


def test_folders_use_those_that_the_table_says():
  assert {folder: set(uses) for folder, uses in _used_folders().items()} == _included_folders()


def test_folders_use_those_above_them():
  listed = list(_used_folders())
  upward = [(folder, other) for folder, uses in _used_folders().items() for other in uses
            if listed.index(other) >= listed.index(folder)]
  assert upward == []
