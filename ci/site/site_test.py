# SPDX-License-Identifier: Apache-2.0
"""The site of the documents builds without a warning, needs nothing from elsewhere, and has every page and symbol."""

import ast
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_SECONDS = 100
_NOT_COPIED = ("bazel-*", ".git", ".venv", "dist", "tensorflow_staging", "__pycache__", ".*_cache")

# A page that the navigation does not name, as it is when somebody adds one.
_LATER = """# Added later

[a page](staged.md#parameters), [a folder's page](../benchmarks/overlap.md), [a source](../ci/steps.sh)
"""


class _Links(html.parser.HTMLParser):
  """Collects what a page loads, where it links to, and the anchors that it has."""

  def __init__(self, page: pathlib.Path):
    super().__init__()
    self.loaded = []
    self.linked = []
    self.anchors = set()
    self.feed(page.read_text(encoding="utf-8"))

  def handle_starttag(self, tag, attrs):
    attributes = dict(attrs)
    self.anchors.add(attributes.get("id"))
    if tag == "a":
      self.linked.append(attributes.get("href", ""))
    elif tag == "link" and attributes.get("rel") not in ("canonical", "prev", "next", "alternate"):
      self.loaded.append(attributes["href"])
    elif "src" in attributes:
      self.loaded.append(attributes["src"])


def _public_names() -> list[str]:
  """The names that public_api_test.py finds in every root."""
  tree = ast.parse((_ROOT / "tensorflow_staging/python/api/public_api_test.py").read_text())
  value, = (each.value for each in tree.body if isinstance(each, ast.Assign) and each.targets[0].id == "_NAMES")
  return ast.literal_eval(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> pathlib.Path:
  """The site of a copy of the repository that has one page more."""
  copy = tmp_path_factory.mktemp("copy") / "repository"
  shutil.copytree(_ROOT, copy, ignore=shutil.ignore_patterns(*_NOT_COPIED))
  (copy / "docs/added_later.md").write_text(_LATER)
  built = copy.parent / "site"
  command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", "ci/site/mkdocs.yml"]
  done = subprocess.run(
      [*command, "--site-dir", str(built)], cwd=copy, capture_output=True, text=True, timeout=_SECONDS, check=False)
  assert done.returncode == 0, done.stderr
  assert "WARNING -" not in done.stderr
  return built


@pytest.fixture(scope="module")
def pages(site) -> dict[pathlib.Path, _Links]:
  return {path: _Links(path) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_page_is_in_the_site(site):
  for path in (_ROOT / "docs").rglob("*.md"):
    assert (site / path.relative_to(_ROOT / "docs")).with_suffix(".html").exists(), path


def test_a_page_that_is_added_later_has_a_place_and_its_links(site, pages):
  assert "added_later.html" in pages[site / "index.html"].linked
  linked = pages[site / "added_later.html"].linked
  assert {"staged.html#parameters", "benchmarks/overlap.html", "ci/steps.sh.txt"} <= set(linked)


def test_nothing_is_loaded_from_elsewhere(site, pages):
  assert len(pages) > 30
  for path, links in pages.items():
    assert [address for address in links.loaded if "//" in address] == [], path
  for path in site.rglob("*.css"):
    assert not re.search(r"(?:url\(|@import )[\"']?(?:https?:)?//", path.read_text(encoding="utf-8")), path


def test_no_page_shows_markdown(pages):
  for path in pages:
    article = re.search(r"<article.*?</article>", path.read_text(encoding="utf-8"), re.DOTALL)[0]
    prose = re.sub(r"<(pre|code)\b.*?</\1>|<[^>]+>", "", article, flags=re.DOTALL)
    assert not re.search(r"\]\(|\*\*|`|^\s*(?:\||[*-] |#)", prose, re.MULTILINE), path
    # Python-Markdown, unlike GitHub, keeps the backslash of an escaped bar in the code of a table.
    assert not any("\\|" in code for code in re.findall(r"<td.*?</td>", article, re.DOTALL)), path


def test_links_lead_to_files_and_anchors_of_the_site(pages):
  for path, links in pages.items():
    for link in links.linked:
      address = urllib.parse.urlsplit(link)
      if address.scheme or address.netloc:
        continue
      target = (path.parent / urllib.parse.unquote(address.path)).resolve() if address.path else path
      assert target.exists(), (path, link)
      if address.fragment and target in pages:
        assert urllib.parse.unquote(address.fragment) in pages[target].anchors, (path, link)


def test_the_reference_has_every_public_symbol(site):
  text = (site / "api.html").read_text(encoding="utf-8")
  headings = re.findall(r"<h2 id=\"[\w-]+\"><code>([\w.]+)</code>", text)
  assert sorted(headings) == sorted(f"tf.{name}" for name in _public_names())
  assert "StageStats" in text


def test_the_reference_shows_how_to_pass_arguments(site):
  text = re.sub(r"<[^>]+>", "", (site / "api.html").read_text(encoding="utf-8"))
  call = re.search(r"tf\.staging\.save_iterators\(\n(.*?)\)", text, re.DOTALL)[1]
  assert call.split() == ["*iterators,", "external_state_policy='fail',"]


def test_the_search_finds_both_languages(site):
  index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
  assert index["config"]["lang"] == ["en", "zh"]
  separator = re.compile(index["config"]["separator"])
  words = {word for entry in index["docs"] for word in separator.split(entry["title"] + " " + entry["text"])}
  assert {"SmartStage", "buffer", "缓", "哈"} <= words


@pytest.mark.parametrize("page,language,next_page", [("zh/staged.html", "zh", "下一页"), ("staged.html", "en", "Next")])
def test_labels_are_in_the_language_of_the_page(site, page, language, next_page):
  html_page = (site / page).read_text(encoding="utf-8")
  assert re.search(r'<html lang="(\w+)"', html_page)[1] == language
  assert next_page in re.findall(r'md-footer__direction">\s*(\S+)', html_page)
