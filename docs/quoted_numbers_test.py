# SPDX-License-Identifier: Apache-2.0
"""A measured number stands in one benchmark, and every page that quotes it has that number."""

import pathlib
import re
from collections.abc import Sequence

import measured_numbers
import pytest

_ROOT = pathlib.Path(__file__).parent.parent

# A number with its unit, or several of them: "10 to 12 %", "10.2 instead of 11.4 ms", "1.3 times".
_MEASURE = re.compile(r"\d[\d.,]*(?:,? (?:to|and|or|instead of) \d[\d.]*)* ?(?:%|ms\b|µs\b|times\b|微秒|毫秒)")
# A link to a benchmark, from another folder and from its own.
_LINK = re.compile(r"\]\([./]*benchmarks/\w+\.md")
_LINK_WITHIN = re.compile(r"\]\(\w+\.md")
# Of the pages for users, gpu.md tells what the kit measures, and the others quote.
_BENCHMARKS = ["benchmarks/gpu.md", "benchmarks/results.md"]
_PAGES = ["README.md", "benchmarks/README.md", "modelzoo/README.md", *sorted(
    path.relative_to(_ROOT).as_posix() for path in (_ROOT / "docs").rglob("*.md")
    if path.name not in ("claims.md", "gpu.md"))]


def _text(page: str) -> str:
  return (_ROOT / page).read_text(encoding="utf-8")


def _joined(text: str) -> str:
  return " ".join(text.split())


def _quotes() -> dict[str, list[str]]:
  """The lines of quotes.txt for each page, with their numbers."""
  numbers = dict(measured_numbers.numbers())
  found: dict[str, list[str]] = {}
  for line in _text("docs/quotes.txt").splitlines():
    if line.startswith("== "):
      page = line.removeprefix("== ")
      found[page] = []
      names = numbers
      if page.startswith("docs/zh/"):
        names = {name: number.replace(" to ", "% 至 ") for name, number in numbers.items()}
    elif line and not line.startswith("# "):
      found[page].append(line.format_map(names))
  return found


def _blocks(page: str) -> list[str]:
  """The paragraphs, entries of lists and rows of tables of a page, without code."""
  text = re.sub(r"^```.*?^```$", "", _text(page), flags=re.DOTALL | re.MULTILINE)
  return [_joined(block) for block in re.split(r"\n\s*\n|\n(?= *[*|] ?)", text)]


def _unquoted(page: str, quotes: Sequence[str]) -> list[str]:
  """The numbers in blocks with a link to a benchmark that no quote of the page has."""
  found = []
  link = _LINK_WITHIN if page.startswith("benchmarks/") else _LINK
  for block in _blocks(page):
    if link.search(block) and not block.startswith("!["):
      for quote in sorted(quotes, key=len, reverse=True):
        block = block.replace(quote, "")
      found += [f"{measure} in {block!r}" for measure in _MEASURE.findall(block)]
  return found


@pytest.mark.parametrize("page", _PAGES + _BENCHMARKS)
def test_the_page_has_the_numbers_of_the_benchmarks(page):
  text = _joined(_text(page))
  assert [quote for quote in _quotes().get(page, []) if quote not in text] == []


@pytest.mark.parametrize("page", _PAGES)
def test_each_number_beside_a_link_to_a_benchmark_is_quoted(page):
  assert _unquoted(page, _quotes().get(page, [])) == []


def test_each_page_that_is_quoted_is_looked_at_and_each_number_is_used():
  assert set(_quotes()) <= set(_PAGES + _BENCHMARKS)
  names = set(re.findall(r"\{(\w+)\}", _text("docs/quotes.txt")))
  assert names <= set(measured_numbers.numbers())


def test_a_number_that_is_not_quoted_is_found(monkeypatch):
  monkeypatch.setattr(f"{__name__}._text", lambda page: "It is [12 % faster](../benchmarks/models.md), and 3 ms too.")
  found = _unquoted("docs/any.md", ["[12 % faster](../benchmarks/models.md)"])
  assert [measure.partition(" in ")[0] for measure in found] == ["3 ms"]


def test_the_settings_that_autotune_chose_are_those_of_the_benchmark():
  table = measured_numbers.table("autotune.md")
  row = re.compile(r"^\| ((?:waits|computes) .+?) \| [^|]+ \| [\d, ]+ \| ([\d.]+) \| ([\d.]+)", re.MULTILINE)
  rows = row.findall(_text("docs/tuning.md"))
  assert len(rows) > 8
  for title, ratio, plain in rows:
    case = title.removesuffix(", at random")
    assert table.number(case, column="chosen / best") == float(ratio)
    assert table.number(case, column="1, 1, ms") == float(plain)


@pytest.mark.parametrize("path", sorted(measured_numbers.BENCHMARKS.glob("*.md")), ids=lambda path: path.name)
def test_each_benchmark_has_its_date_and_commit(path):
  if path.name not in ("README.md", "results.md"):
    text = path.read_text(encoding="utf-8")
    assert re.search(r"\b\d{1,2} [A-Z][a-z]+ 20\d\d\b", text)
    assert re.search(r"\b[Cc]ommits? [0-9a-f]{7}\b", text)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "benchmarks/README.md"])
def test_the_text_of_the_picture_has_its_numbers(page):
  table = measured_numbers.table("pipelines.md", "## Batches of 256 rows")
  ways = ("`tf.data`", "`tf.data`, `prefetch`", "`tf.staged`")
  shown = [f"{table.number(way, column='ms per step'):.1f}" for way in ways]
  text, = re.findall(r"!\[([^\]]*)\]\([^)]*gain\.svg\)", _text(page))
  assert re.findall(r"\d+\.\d+", text) == shown
