# SPDX-License-Identifier: Apache-2.0
"""The picture of `tf.staging.explain` frames stages and step, labels the boundary and has few boxes for any graph."""

import os
import re
import xml.etree.ElementTree

import pytest
import tensorflow as tf

from tensorflow_staging.python.explain import explain_boxes
from tensorflow_staging.python.explain import explain_graph
from tensorflow_staging.python.explain import explain_picture
from tensorflow_staging.python.testing import report_graphs
from tensorflow_staging.python.testing import test_util

_MAX_BOXES = 60
# Processor time, because it depends less on the load of the machine than elapsed time does.
_LARGE_SECONDS = 10

_SVG = "{http://www.w3.org/2000/svg}"


def _box_count(dot: str) -> int:
  return len(re.findall(r"^ *b\d+ \[label=", dot, re.MULTILINE))


def _processor_seconds() -> float:
  """Returns the processor time of this process and of the child processes that it has waited for."""
  return sum(os.times()[:4])


def test_stage_and_step_are_clusters_of_different_colours():
  report_graphs.model()
  dot = tf.staging.explain().to_dot()
  stage, step = re.findall(r"subgraph cluster_(?:stage0|step) \{(.*?)\n  \}", dot, re.DOTALL)
  assert "ahead of the step: stage 'prefetch', 2 nodes" in stage
  assert r"hash/bucket\n(StringToHashBucketFast)" in stage
  assert r"embedding_lookup\n(GatherV2)" in step
  colors = [re.findall(r'fillcolor="(.*?)"', cluster) for cluster in (stage, step)]
  assert colors[0] != colors[1]


def test_arrows_of_the_boundary_carry_tensor_type_shape_and_bytes():
  report_graphs.model()
  dot = tf.staging.explain().to_dot()
  assert r'label="hash/bucket:0\nint64 [?], at least 8 bytes"' in dot
  assert r'label="IteratorGetNext:0\nfloat32 [?, 3], at least 12 bytes"' in dot
  arrows = re.findall(r"(b\d+) -> (b\d+)", dot)
  assert len(arrows) == len(set(arrows))  # No boundary arrow has a plain arrow beside it.


def test_many_tensors_between_two_boxes_are_one_arrow_with_their_total_size():
  dataset = tf.data.Dataset.from_tensors([tf.constant([1.0, 2.0])] * 1).map(lambda x: tuple([x[0]] * 4))
  tensors = tf.data.make_one_shot_iterator(dataset).get_next()
  tf.add_n([tf.get_variable("weight", [])] + [tensor[0] for tensor in tensors])
  tf.train.mark_target_node(tf.add_n(tensors))
  assert r'label="4 tensors,\n32 bytes"' in tf.staging.explain().to_dot()


def test_constants_that_both_sides_use_are_left_out_and_counted():
  report_graphs.model()
  dot = tf.staging.explain().to_dot()
  assert "(Const)" not in re.sub(r"subgraph cluster_once \{.*?\n  \}", "", dot, flags=re.DOTALL)
  assert re.search(r"Not drawn: \d+ nodes that depend on no source of records", dot)


def test_what_runs_once_has_a_cluster_with_few_boxes():
  report_graphs.model()
  report = tf.staging.explain()
  once, = re.findall(r"subgraph cluster_once \{(.*?)\n  \}", report.to_dot(), re.DOTALL)
  count = report.graph.count(explain_graph.ONCE)
  assert count > 6
  assert f"runs once, before the first step, {count} nodes" in once
  assert 2 <= _box_count(once) <= 6


def test_a_manual_stage_is_drawn_up_to_its_buffer_and_after_it():
  record = tf.staged(tf.add(test_util.dataset_record(3), 1, name="before"))
  key = tf.add(record, 1, name="after")
  tf.gather(tf.get_variable("embedding", [10]), key)
  dot = tf.staging.explain().to_dot()
  stage, = re.findall(r"subgraph cluster_stage0 \{(.*?)\n  \}", dot, re.DOTALL)
  # IteratorGetNext, before, the Put and after: the Take runs in the step, and what starts the stage is not drawn.
  assert "manual stage 'prefetch', 4 nodes" in stage
  assert "TensorBufferResume" not in dot
  assert "nodes that start and stop manual stages" in dot
  box_of = dict(re.findall(r'(b\d+) \[label="(\S+)\\n\(', stage))
  boxes = {label: box for box, label in box_of.items()}
  assert {"before", "after"} <= boxes.keys()
  assert f"{boxes['prefetch/TensorBufferPut']} -> {boxes['prefetch/TensorBufferTake']};" in dot


def test_equal_graphs_give_equal_pictures():
  pictures = []
  for _ in range(2):
    with tf.Graph().as_default() as graph:
      report_graphs.model()
    pictures.append(tf.staging.explain(graph).to_dot())
  assert pictures[0] == pictures[1]


def test_an_empty_graph_has_a_picture(tmp_path):
  tf.staging.explain().save_svg(tmp_path / "empty.svg")
  assert (tmp_path / "empty.svg").stat().st_size > 0


def test_the_svg_has_colours_for_dark_pages_and_changes_all_of_its_own(tmp_path):
  path = tmp_path / "stages.svg"
  explain_picture.save_svg("digraph { a }", path)
  assert xml.etree.ElementTree.parse(path).find(f"{_SVG}style").text == re.search(
      "<style>(.*)</style>", explain_picture._DARK_STYLE, re.DOTALL)[1]
  for colour in (*explain_picture._STAGE_COLORS, *explain_picture._STEP_COLORS, *explain_picture._ONCE_COLORS):
    assert f'[fill="{colour}"]' in explain_picture._DARK_STYLE


def test_the_svg_shows_the_nodes(tmp_path):
  report_graphs.model()
  path = tmp_path / "stages.svg"
  tf.staging.explain().save_svg(str(path))
  texts = {text.text for text in xml.etree.ElementTree.parse(path).iter(_SVG + "text")}
  assert {"hash/bucket", "(StringToHashBucketFast)", "embedding_lookup"} <= texts


@pytest.mark.parametrize("stages", [20, 21, 80])
def test_the_picture_of_many_stages_has_few_boxes(stages):
  weight = tf.get_variable("weight", [10])
  for _ in range(stages):
    tf.gather(weight, tf.identity(test_util.dataset_record(3)))
  report = tf.staging.explain()
  assert len(report.stages) == stages
  dot = report.to_dot()
  assert _box_count(dot) <= _MAX_BOXES
  assert len(re.findall(r"subgraph cluster_stage", dot)) == 20
  assert (f"ahead of the step: {stages - 19} more stages, {2 * (stages - 19)} nodes" in dot) == (stages > 20)
  assert not re.search(r"(b\d+) -> \1\b", dot)


def test_a_large_graph_is_grouped_by_scope_and_drawn_in_time(tmp_path):
  report_graphs.large_model(50_000)
  start = _processor_seconds()
  report = tf.staging.explain()
  dot = report.to_dot()
  explain_picture.save_svg(dot, tmp_path / "large.svg")
  seconds = _processor_seconds() - start
  assert len(report.stages[0].nodes) > 20_000
  assert 10 <= _box_count(dot) <= _MAX_BOXES
  assert "input/tower_3" in dot and "model/tower_3" in dot
  assert not re.search(r"(b\d+) -> \1\b", dot)
  assert seconds < _LARGE_SECONDS, seconds


def test_without_graphviz_the_error_says_what_to_install(tmp_path, monkeypatch):
  monkeypatch.setenv("PATH", str(tmp_path))
  with pytest.raises(RuntimeError, match="apt-get install graphviz"):
    tf.staging.explain().save_svg(tmp_path / "none.svg")


def test_an_error_of_graphviz_is_reported(tmp_path):
  with pytest.raises(RuntimeError, match="dot.*syntax error"):
    explain_picture.save_svg("digraph {", tmp_path / "none.svg")
  assert not (tmp_path / "none.svg").exists()


def test_boxes_hold_each_node_once_and_keep_to_the_limit():
  names = [f"a/b_{i}/c{j}" for i in range(40) for j in range(5)] + ["a", "single"] + [f"n_{i}x" for i in range(100)]
  for limit in (1, 2, 3, 10, 50, 60, 1000):
    boxes = explain_boxes.boxes(names, range(len(names)), limit)
    assert sorted(member for box in boxes for member in box.members) == list(range(len(names)))
    assert len(boxes) <= limit
  assert len(boxes) == len(names)


def test_boxes_keep_large_scopes_apart_and_merge_names_that_differ_in_numbers():
  names = [f"layer_{i}/x" for i in range(30)] + [f"model/part/{part}" for part in "abc"]
  boxes = explain_boxes.boxes(names, range(len(names)), 5)
  assert [(box.label, len(box.members)) for box in boxes] == [("layer_*", 30), ("model", 3)]


def test_boxes_open_the_largest_scope_first():
  names = ["a/x", "a/y"] + [f"z/{part}" for part in "vwxyz"]
  boxes = explain_boxes.boxes(names, range(len(names)), 6)
  assert [box.label for box in boxes] == ["a/*", "z/v", "z/w", "z/x", "z/y", "z/z"]


def test_boxes_of_many_unlike_scopes_are_the_largest_ones():
  names = ["zoo/x", "zoo/y", "zoo/z"] + [chr(ord("a") + i) * 3 for i in range(20)]
  boxes = explain_boxes.boxes(names, range(len(names)), 6)
  labels = {box.label: len(box.members) for box in boxes}
  assert labels["*"] >= 15
  assert {"zoo/x", "zoo/y", "zoo/z"} < set(labels) or "zoo" in labels
