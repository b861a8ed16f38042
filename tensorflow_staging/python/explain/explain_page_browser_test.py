# SPDX-License-Identifier: Apache-2.0
"""The HTML page of a report works in a browser. Skipped unless `ci/install_browser.sh` has installed one."""

import dataclasses
import pathlib
import shutil
import time

import pytest
import tensorflow as tf

from tensorflow_staging.python.explain import explain_graph
from tensorflow_staging.python.testing import report_graphs

_BROWSERS = ("chromium-headless-shell", "chromium")
_BROWSER = next(filter(None, map(shutil.which, _BROWSERS)), None)
_INSTALL = "ci/install_browser.sh installs it"

sync_api = pytest.importorskip("playwright.sync_api", reason=f"Playwright is not installed; {_INSTALL}.")
pytestmark = pytest.mark.skipif(_BROWSER is None, reason=f"No {' or '.join(_BROWSERS)}; {_INSTALL}.")

_WAIT_MILLIS = 20_000
# Far more than it takes, and far less than what would annoy a reader.
_LARGE_SECONDS = 10
_SCREEN = {"width": 1200, "height": 900}


@pytest.fixture(scope="module")
def browser():
  with sync_api.sync_playwright() as playwright:
    launched = playwright.chromium.launch(executable_path=_BROWSER, timeout=_WAIT_MILLIS)
    yield launched
    launched.close()


@pytest.fixture
def open_page(browser, tmp_path):
  """Opens the page of a report, or one in a file; fails if a page reports an error or asks for anything but itself."""
  contexts = []
  complaints = []

  def open_one(report, scheme="light", screen=None):
    path = report
    if not isinstance(report, pathlib.Path):
      path = tmp_path / f"report{len(contexts)}.html"
      report.save_html(path)
    contexts.append(browser.new_context(color_scheme=scheme, viewport=screen or _SCREEN, offline=True))
    page = contexts[-1].new_page()
    page.set_default_timeout(_WAIT_MILLIS)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if request.url != path.as_uri() else None)
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.goto(path.as_uri())
    return page

  yield open_one
  for context in contexts:
    context.close()
  assert complaints == []


@pytest.fixture(scope="module")
def large(tmp_path_factory):
  """The names of a large graph's nodes, and the page of its report."""
  with tf.Graph().as_default() as graph:
    report_graphs.large_model(50_000)
  report = tf.staging.explain(graph)
  path = tmp_path_factory.mktemp("large") / "report.html"
  report.save_html(path)
  return [name for name, _, _ in report.graph.nodes], path


def _rgb(page, selector: str, attribute: str) -> list[int]:
  """Returns the red, green and blue of a colour that the browser computed."""
  color = page.eval_on_selector(selector, f"element => getComputedStyle(element).{attribute}")
  return [int(part) for part in color[color.index("(") + 1:-1].split(",")[:3]]


def test_a_small_graph_is_shown_open_with_the_side_and_reason_of_each_node(open_page):
  report_graphs.model()
  page = open_page(tf.staging.explain())
  assert page.evaluate("document.compatMode") == "CSS1Compat"
  rows = page.locator("#tree .leaf")
  assert rows.count() == tf.staging.explain().num_nodes
  hash_row = rows.filter(has_text="bucket").inner_text()
  assert hash_row.split() == ["bucket", "StringToHashBucketFast", "stage", "prefetch"]
  assert "depends on variable 'embedding' (VariableV2)" in rows.filter(has_text="GatherV2").inner_text()
  assert "runs once" in rows.filter(has_text="OneShotIterator").inner_text()


def test_scopes_open_one_level_at_a_time(open_page, large):
  page = open_page(large[1])
  assert page.locator("#tree .leaf").filter(has_text="Identity").count() == 0
  page.get_by_text("model", exact=True).click()
  sync_api.expect(page.locator("#tree summary").filter(has_text="tower_7")).to_have_count(1, timeout=_WAIT_MILLIS)
  assert page.locator("#tree summary").filter(has_text="block_0").count() == 0


def test_the_page_of_a_large_graph_loads_and_answers_quickly(open_page, large):
  start = time.monotonic()
  page = open_page(large[1])
  page.fill("#query", "input/tower_3 layer_5 identity_49")
  page.wait_for_selector("#results li")
  assert time.monotonic() - start < _LARGE_SECONDS
  nodes, _ = large
  expected = [name for name in nodes if all(part in name for part in ("input/tower_3", "layer_5", "identity_49"))]
  assert page.locator("#results a").all_inner_texts() == expected
  assert page.inner_text("#found") == f"{len(expected)} of {len(nodes):,} nodes"


def test_a_long_list_of_results_grows_as_the_reader_asks(open_page, large):
  page = open_page(large[1])
  page.fill("#query", "identity_4")
  page.wait_for_selector("#results .more")
  assert page.locator("#results a").count() == 200
  page.click("#results .more")
  sync_api.expect(page.locator("#results a")).to_have_count(400, timeout=_WAIT_MILLIS)


def test_results_can_be_limited_to_a_side(open_page):
  report_graphs.model()
  report = tf.staging.explain()
  page = open_page(report)
  page.select_option("#side", label="runs once")
  once = [name for name, _, side in report.graph.nodes if side == explain_graph.ONCE]
  sync_api.expect(page.locator("#results a")).to_have_count(len(once), timeout=_WAIT_MILLIS)
  found = page.locator("#results a").all_inner_texts()
  assert sorted(found) == sorted(once)


def test_a_search_without_a_result_says_so(open_page):
  report_graphs.model()
  page = open_page(tf.staging.explain())
  page.fill("#query", "no such node")
  sync_api.expect(page.locator("#found")).to_have_text("0 of 26 nodes", timeout=_WAIT_MILLIS)
  assert page.locator("#results li").count() == 0


@pytest.mark.parametrize("start", ["result", "report"])
def test_a_name_leads_to_its_place_in_the_tree(open_page, large, start):
  page = open_page(large[1])
  name = "input/tower_2/block_8/layer_6/identity_24"
  if start == "result":
    page.fill("#query", name)
  page.locator("#results a" if start == "result" else "#stages a").filter(has_text=name).first.click()
  row = page.locator(".shown")
  assert row.inner_text().startswith("identity_24 Identity")
  box = row.bounding_box()
  assert 0 <= box["y"] <= _SCREEN["height"]
  assert page.is_hidden("#results")


def test_names_are_shown_and_never_run(open_page):
  name = "<img src=x onerror=alert(1)>"
  report_graphs.model()
  report = tf.staging.explain()
  graph = dataclasses.replace(
      report.graph, nodes=((name, name, explain_graph.STEP), *report.graph.nodes[1:]),
      whys=tuple(dataclasses.replace(why, text=name) for why in report.graph.whys))
  page = open_page(dataclasses.replace(report, graph=graph))
  assert page.locator("img").count() == 0
  assert page.locator("#tree .leaf").filter(has_text=name).count() > 1
  page.fill("#query", "onerror")
  page.wait_for_selector("#results li")
  assert page.locator("#results a").inner_text() == name
  assert page.locator("img").count() == 0


_PHONE = {"width": 390, "height": 844}
# A reader of the verdict, the advice, the stages and the reasons scrolls through so many screens of a phone.
_SCREENS = 6


def _recommender():
  """A graph like that of a recommender: 5,000 nodes, with 40 tables and their gradients."""
  keys = tf.data.make_one_shot_iterator(
      tf.data.Dataset.from_tensors({f"C{i}": ["a", "b"] for i in range(40)}).repeat()).get_next()
  columns = [
      tf.feature_column.embedding_column(tf.feature_column.categorical_column_with_hash_bucket(key, 100), 8)
      for key in keys
  ]
  loss = tf.reduce_sum(tf.layers.dense(tf.feature_column.input_layer(keys, columns), 4))
  tf.train.AdamOptimizer().minimize(loss)


def test_a_large_report_fits_a_phone(open_page):
  _recommender()
  report = tf.staging.explain()
  assert report.num_nodes > 5000
  page = open_page(report, screen=_PHONE)
  assert page.evaluate("document.documentElement.scrollWidth") == _PHONE["width"]
  assert page.locator("#graph").bounding_box()["y"] < _SCREENS * _PHONE["height"]
  # Opened, a row is as wide as the screen allows.
  for summary in page.locator("#stages .groups > details > summary").all():
    summary.click()
  assert page.evaluate("document.documentElement.scrollWidth") == _PHONE["width"]
  assert "because of 40 like" in page.locator("#advice").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(open_page, scheme):
  report_graphs.model()
  page = open_page(tf.staging.explain(), scheme)
  background = _rgb(page, "body", "backgroundColor")
  assert (sum(background) > 600) == (scheme == "light")
  for selector in ("body", ".why", ".op", "a.node", ".badge.ahead", ".badge.step", ".badge.once", ".badge.shared"):
    assert _contrast(_rgb(page, selector, "color"), background) >= 4.5, selector


def _contrast(one: list[int], other: list[int]) -> float:
  """Returns the contrast ratio of two colours as the accessibility guidelines (WCAG 2) define it."""

  def luminance(rgb: list[int]) -> float:
    parts = [value / 255 for value in rgb]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055)**2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

  dark, light = sorted((luminance(one), luminance(other)))
  return (light + 0.05) / (dark + 0.05)
