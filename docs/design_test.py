# SPDX-License-Identifier: Apache-2.0
"""Tests that design.md names what exists: its files, and every patch."""

import pathlib
import re

_FOLDER = pathlib.Path(__file__).parent
_TEXT = (_FOLDER / "design.md").read_text()
_ROOT = _FOLDER.parent
_CORE = _ROOT / "tensorflow_staging/core"

# A path of a file or folder in backquotes, with or without its folders.
_PATH = re.compile(r"`((?:\.\./)?[\w/.]+(?:\.(?:cc|h|py|md)|/))`")

# Upstream's own files.
_UPSTREAM = {"direct_session_test.cc"}


def _exists(path: str) -> bool:
  if path.startswith("python/"):
    return (_ROOT / "tensorflow_staging" / path).exists()
  if "/" in path:
    return (_CORE / path).exists() or (_ROOT / path).exists()
  return any(_CORE.rglob(path))


def test_named_files_exist():
  paths = set(_PATH.findall(_TEXT)) - _UPSTREAM
  assert len(paths) > 40
  assert [path for path in sorted(paths) if not _exists(path)] == []


def test_every_patch_is_listed_once():
  listed = re.findall(r"^\| `([\w-]+)` \|", _TEXT.partition("## What each patch hooks")[2], re.MULTILINE)
  series = (_ROOT / "patches/series").read_text().splitlines()
  assert sorted(listed) == sorted(line.removesuffix(".patch") for line in series if not line.startswith("#"))
