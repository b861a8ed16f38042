# SPDX-License-Identifier: Apache-2.0
"""glossary.md is used: pages for users link to it, and each word has one row in a table, and one meaning."""

import pathlib
import re

import pytest

_DOCS = pathlib.Path(__file__).parent
_NOT_FOR_USERS = {"claims.md", "glossary.md", "rebasing.md"}


@pytest.mark.parametrize("path", sorted(path for path in _DOCS.glob("*.md") if path.name not in _NOT_FOR_USERS),
                         ids=lambda path: path.name)
def test_a_page_says_where_its_words_are_defined(path):
  assert re.search(r"\]\(glossary\.md[#)]", path.read_text(encoding="utf-8"))


def test_the_words_that_readers_meet_first_are_defined():
  text = (_DOCS / "glossary.md").read_text(encoding="utf-8")
  words = {word.strip() for row in re.findall(r"^\| ([^|]+?) \|", text, re.MULTILINE) for word in row.split(",")}
  first = {"stage", "record", "API", "region", "producer", "hide", "by turns", "beside a stage", "source", "ledger"}
  assert first - words == set()
