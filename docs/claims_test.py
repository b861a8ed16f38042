# SPDX-License-Identifier: Apache-2.0
"""claims.md is true: the tests that it names exist, its pages have its headings, and no page for users names a test."""

import pathlib
import re

import named_tests
import pytest

_DOCS = pathlib.Path(__file__).parent
_ROOT = _DOCS.parent
_TEXT = (_DOCS / "claims.md").read_text()

# Pages about the code.
_FOR_MAINTAINERS = {"claims.md", "design.md", "rebasing.md"}
_FOR_USERS = sorted(
    path for path in (*_DOCS.rglob("*.md"), _ROOT / "README.md", _ROOT / "CHANGELOG.md", _ROOT / "modelzoo/README.md")
    if path.name not in _FOR_MAINTAINERS)

# The name of a test file in backquotes, with or without its folder, or that of a C++ test.
_TEST = re.compile(r"`(?:[\w/]+_(?:test|cases)\.(?:py|cc)(?:::\w+)?|\w+Test\.\w+)`")
# What says how to run the tests, and not what they show.
_ABOUT_TESTS = {"gpu.md": {"`random_gpu_graphs_test.cc`", "`handover_session_test.cc`"}}


def _headings(text: str) -> set[str]:
  return set(re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE))


def _pages() -> dict[str, str]:
  """The part of each page in claims.md."""
  names = re.findall(r"^## (\S+)$", _TEXT, re.MULTILINE)
  return dict(zip(names, re.split(r"^## \S+$", _TEXT, flags=re.MULTILINE)[1:], strict=True))


def test_named_tests_exist():
  assert len(named_tests.python_tests(_TEXT)) > 200
  assert named_tests.missing_python_tests(_TEXT) == []
  assert len(re.findall(r"`\w+Test\.\w+`", _TEXT)) > 80
  assert named_tests.missing_cpp_tests(_TEXT) == []


@pytest.mark.parametrize("page", _pages())
def test_the_page_has_the_headings(page):
  named = re.findall(r"^### (.+)$", _pages()[page], re.MULTILINE)
  assert named
  assert set(named) - _headings((_ROOT / page).read_text()) == set()


def test_every_claim_names_a_test():
  heads = ("| claim | tests |", "|---|---|")
  rows = [line for line in _TEXT.splitlines() if line.startswith("|") and line not in heads]
  assert len(rows) > 250
  assert [row for row in rows if not _TEST.search(row.rpartition(" | ")[2])] == []


@pytest.mark.parametrize("path", _FOR_USERS, ids=lambda path: str(path.relative_to(_ROOT)))
def test_a_page_for_users_names_no_test(path):
  assert set(_TEST.findall(path.read_text())) <= _ABOUT_TESTS.get(path.name, set())


def test_a_test_that_does_not_exist_is_found():
  assert named_tests.missing_python_tests("`keras_test.py` `keras_test.py::test_is_not_there`") != []
  assert named_tests.missing_cpp_tests("`StageThreadPoolsTest.IsNotThere`") != []
