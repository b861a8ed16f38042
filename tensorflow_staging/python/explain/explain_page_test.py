# SPDX-License-Identifier: Apache-2.0
"""The HTML page of a report is well-formed, needs no other file, has every part of the report, and escapes names."""

import dataclasses
import html
import html.parser
import json
import re
import time

import pytest
import tensorflow as tf

from tensorflow_staging.python.explain import explain_data
from tensorflow_staging.python.explain import explain_graph
from tensorflow_staging.python.explain import explain_page
from tensorflow_staging.python.explain import explain_page_data
from tensorflow_staging.python.testing import report_graphs
from tensorflow_staging.python.testing import smart_stage_sessions

# Processor time, because it depends less on the load of the machine than elapsed time does.
_LARGE_SECONDS = 10
_LARGE_BYTES = 3_000_000

# Elements that have no end tag.
_VOID = {"meta", "input", "br", "link", "img", "hr"}
_HOSTILE = "a'b\"</script><img src=x onerror=alert(1)>&amp;<!--"


class _Page(html.parser.HTMLParser):
  """Checks that elements are nested and ids are unique, and collects what the page refers to and shows."""

  def __init__(self, text: str):
    super().__init__()
    self.tags = []
    self.ids = set()
    self.references = []
    self.texts = []
    self._open = []
    self.feed(text)
    self.close()
    assert self._open == []

  def handle_starttag(self, tag, attrs):
    attributes = dict(attrs)
    assert len(attributes) == len(attrs), f"{tag} has an attribute twice"
    self.tags.append(tag)
    if "id" in attributes:
      assert attributes["id"] not in self.ids
      self.ids.add(attributes["id"])
    self.references += [attributes[name] for name in ("src", "href", "action", "data") if name in attributes]
    assert not any(name.startswith("on") for name in attributes)
    if tag not in _VOID:
      self._open.append(tag)

  def handle_endtag(self, tag):
    assert self._open.pop() == tag

  def handle_data(self, data):
    if self._open and self._open[-1] not in ("script", "style"):
      self.texts.append(data)

  @property
  def text(self) -> str:
    return " ".join(" ".join(self.texts).split())


def _data(page: str) -> dict:
  return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def _names(data: dict) -> list[str]:
  names = [""]
  assert len(data["shared"]) == len(data["rest"])
  for shared, rest in zip(data["shared"], data["rest"]):
    names.append(names[-1][:shared] + rest)
  return names[1:]


def _hostile_report():
  """A report in which every name and text is one that breaks a page that does not escape it."""
  node = explain_data.OutsideNode(_HOSTILE, _HOSTILE, _HOSTILE)
  tensor = explain_data.BoundaryTensor(_HOSTILE + ":0", tf.float32, tf.TensorShape([1]))
  stage = explain_data.Stage(
      name=_HOSTILE, by_hand=False, sources=(_HOSTILE,), nodes=(_HOSTILE,), boundary=(tensor,), elements=(tensor,),
      outside=(node,), variables=(_HOSTILE,), stale_steps=2,
      iterators=(explain_data.StageIterator(_HOSTILE, _HOSTILE, (_HOSTILE,)),),
      changing=(explain_data.ChangingState(_HOSTILE, _HOSTILE, (_HOSTILE,)),))
  graph = explain_graph.StagedGraph(
      nodes=((_HOSTILE, _HOSTILE, 0), (_HOSTILE + "2", _HOSTILE, explain_graph.STEP)), edges=(),
      whys=(explain_graph.Why(_HOSTILE, explain_graph.ITSELF, _HOSTILE),), why_of=(-1, 0), step_only=frozenset())
  return dataclasses.replace(
      tf.staging.explain(), stages=(stage,), unstaged_sources=(node,),
      reasons=(explain_data.Reason(2, node, (_HOSTILE, _HOSTILE)),),
      advice=(explain_data.Advice(node, 3, _HOSTILE),), graph=graph, num_nodes=2)


def test_the_page_has_every_part_of_the_report():
  report_graphs.model()
  report = tf.staging.explain(config=smart_stage_sessions.smart_stage_config())
  page = _Page(report.to_html())
  for text in [
      "SmartStage is on: 2 nodes, all that depend on records alone, run ahead of the step, in 1 stage.",
      "The graph has 26 nodes.",
      "Stage 'prefetch', made by SmartStage of 2 nodes.",
      "2 tensors at least 20 bytes a record",
      "IteratorGetNext :0 float32 [?, 3] at least 12 bytes",
      "hash/bucket :0 int64 [?] at least 8 bytes",
      "embedding_lookup GatherV2 depends on variable 'embedding' (VariableV2)",
      f"{report.graph.count(explain_graph.ONCE)} nodes run once, before the first step",
      "What would let more run ahead",
  ]:
    assert text in page.text


@pytest.mark.parametrize("make", [lambda: None, report_graphs.model], ids=["empty", "model"])
def test_the_page_is_well_formed_and_refers_to_nothing_else(make):
  make()
  text = tf.staging.explain().to_html()
  page = _Page(text)
  assert text.startswith("<!DOCTYPE html>\n<html lang=\"en\">")
  assert all(reference.startswith("#") and reference[1:] in page.ids for reference in page.references)
  assert not re.search(r"@import|url\(|https?:", text)
  assert "default-src 'none'" in text


def test_names_and_reasons_cannot_end_their_element():
  report = _hostile_report()
  text = report.to_html()
  page = _Page(text)
  assert "img" not in page.tags
  assert page.tags.count("script") == 2
  assert "<img" not in text and "<!--" not in text
  for section in ("Stage '", "only because", "Records come from"):
    assert section in page.text or section == "only because"
  assert page.text.count(_HOSTILE) >= 10
  data = _data(text)
  assert _names(data) == [_HOSTILE, _HOSTILE + "2"]
  assert data["whys"] == [_HOSTILE] and data["ops"] == [_HOSTILE] and data["stages"] == [_HOSTILE]


def test_the_data_has_each_node_with_its_side_and_reason_in_the_order_of_scopes():
  names = ["b/x_10", "b/x_9", "b", "a/é1", "a/é2", "b/x_9/y"]
  with tf.Graph().as_default():
    report = tf.staging.explain()
  graph = explain_graph.StagedGraph(
      nodes=tuple((name, f"Op{i % 2}", -i % 2 - 1) for i, name in enumerate(names)), edges=(),
      whys=(explain_graph.Why("is so", explain_graph.ITSELF, ""),), why_of=(0, -1, 0, -1, 0, -1), step_only=frozenset())
  report = dataclasses.replace(report, graph=graph)
  order = explain_page_data.page_order(report)
  data = json.loads(explain_page_data.page_data(report, order))
  assert _names(data) == ["a/é1", "a/é2", "b", "b/x_9", "b/x_9/y", "b/x_10"]
  for position, node in enumerate(order):
    assert data["ops"][data["op"][position]] == graph.nodes[node][1]
    assert data["side"][position] == graph.nodes[node][2]
    assert data["why"][position] == graph.why_of[node]


def test_links_lead_to_the_nodes_that_they_name():
  report_graphs.model()
  text = tf.staging.explain().to_html()
  names = _names(_data(text))
  links = re.findall(r'data-node="(\d+)">(.*?)</a>', text)
  assert len(links) > 5
  assert all(names[int(position)] == html.unescape(name) for position, name in links)


def test_long_lists_end_with_how_many_more_there_are():
  report_graphs.model()
  report = tf.staging.explain()
  stage = dataclasses.replace(report.stages[0], boundary=report.stages[0].boundary * 300)
  page = _Page(dataclasses.replace(report, stages=(stage,)).to_html())
  assert "and 100 more" in page.text


def test_the_verdict_and_the_advice_come_first():
  report_graphs.model()
  text = tf.staging.explain().to_html()
  ids = ("advice", "stages", "reasons", "graph")
  found = [text.index(part) for part in ('class="summary"', *(f'<section id="{each}"' for each in ids))]
  assert found == sorted(found)


def _tensor(name, size):
  return explain_data.BoundaryTensor(name, tf.int8, tf.TensorShape([size]))


def test_many_tensors_are_shown_by_scope_the_largest_first_and_those_of_the_optimizer_last():
  tensors = [_tensor(f"input/C{i}/{key}:0", i + 1) for i in range(10) for key in ("ids", "shape")]
  tensors += [_tensor(f"gradients/input/C{i}:0", 1000) for i in range(10)]
  tensors += [_tensor("label:0", 1), _tensor("a/b:0", 99)]
  text = explain_page._tensors(tensors, explain_page._NodeLinks(tf.staging.explain(), []))
  titles = re.findall(r"<summary>(?:<code>)?(.*?)(?:</code>)? <span class=\"count\">(.*?)</span>", text)
  assert titles[0] == ("a", "1 tensor, 99 bytes")
  assert titles[1] == ("input/C9", "2 tensors, 20 bytes")
  assert titles[-2] == ("in no scope", "1 tensor, 1 byte")
  assert titles[-1] == ("gradients and the optimizer", "10 tensors, 9.8 KiB")


def test_few_tensors_are_a_table():
  text = explain_page._tensors(
      [_tensor("input/b_10:0", 2), _tensor("input/b_9:0", 2), _tensor("input/c:0", 3)],
      explain_page._NodeLinks(tf.staging.explain(), []))
  assert "<details>" not in text
  assert re.findall(r"<code>(.*?)</code>", text) == ["input/c", "input/b_9", "input/b_10"]


def test_equal_graphs_give_equal_pages():
  pages = []
  for _ in range(2):
    with tf.Graph().as_default() as graph:
      report_graphs.model()
    pages.append(tf.staging.explain(graph).to_html())
  assert pages[0] == pages[1]


def test_the_page_of_a_large_graph_is_small_and_written_in_time(tmp_path):
  report_graphs.large_model(50_000)
  start = time.process_time()
  report = tf.staging.explain()
  report.save_html(tmp_path / "large.html")
  seconds = time.process_time() - start
  assert (tmp_path / "large.html").stat().st_size < _LARGE_BYTES
  assert len(_names(_data((tmp_path / "large.html").read_text()))) == report.num_nodes
  assert seconds < _LARGE_SECONDS, seconds


def test_the_policy_allows_the_script_of_the_page_alone():
  text = explain_page.page(tf.staging.explain())
  scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
  assert len(scripts) == 1
  assert f"script-src '{explain_page._digest(scripts[0])}'" in text
