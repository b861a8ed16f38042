# SPDX-License-Identifier: Apache-2.0
"""The advice of a report counts the nodes that are in the step because of one node alone."""

import dataclasses

import pytest
import tensorflow as tf

from tensorflow_staging.python.explain import explain_graph
from tensorflow_staging.python.explain import explain_text
from tensorflow_staging.python.explain import limiting_nodes
from tensorflow_staging.python.testing import report_graphs

_AHEAD = 0
_STEP = explain_graph.STEP


def _graph(sides: dict[str, int], edges: list[str], reasons: dict[str, str], step_only=()) -> explain_graph.StagedGraph:
  """Makes a graph.

  Args:
    sides: The side of each node.
    edges: "source destination" of each edge.
    reasons: For each node of the step, the node that its reason is about.
    step_only: The nodes that stay in the step whatever they depend on.
  """
  index = {name: i for i, name in enumerate(sides)}
  whys = [
      explain_graph.Why(
          f"has the reason {about}", explain_graph.ITSELF if about == name else index.get(about, explain_graph.NOTHING),
          f"Change {about}.") for name, about in reasons.items()
  ]
  why_of = {name: i for i, name in enumerate(reasons)}
  return explain_graph.StagedGraph(
      nodes=tuple((name, "Op", side) for name, side in sides.items()),
      edges=tuple((index[src], 0, index[dst]) for src, dst in (edge.split() for edge in edges)),
      whys=tuple(whys),
      why_of=tuple(why_of.get(name, -1) for name in sides),
      step_only=frozenset(index[name] for name in step_only))


def _held_back(graph: explain_graph.StagedGraph, unstaged_sources=()) -> dict[str, int]:
  found = limiting_nodes.held_back(graph, unstaged_sources)
  return {graph.nodes[node][0]: count for node, count in found.items()}


# next is ahead; a uses next and variable v; b uses a; c uses b and variable w; train updates.
_CHAIN = _graph(
    {"next": _AHEAD, "v": _STEP, "a": _STEP, "b": _STEP, "w": _STEP, "c": _STEP, "train": _STEP},
    ["next a", "v a", "a b", "b c", "w c", "c train"],
    {"v": "v", "a": "v", "b": "v", "w": "w", "c": "v", "train": "train"},
    step_only=("v", "w", "train"))


def test_nodes_with_one_cause_are_counted_and_those_with_two_are_not():
  # c has two causes. v does not count: it depends on no source, so it would not run ahead.
  assert _held_back(_CHAIN) == {"v": 2}


def test_a_node_that_depends_on_a_source_counts_for_its_own_reason():
  graph = _graph(
      {"next": _AHEAD, "marked": _STEP, "after": _STEP, "train": _STEP}, ["next marked", "marked after", "after train"],
      {"marked": "marked", "after": "marked", "train": "train"}, step_only=("marked", "train"))
  assert _held_back(graph) == {"marked": 2}


def test_nodes_that_lead_to_nothing_in_the_step_do_not_count():
  graph = _graph({"next": _AHEAD, "v": _STEP, "shown": _STEP}, ["next shown", "v shown"], {"v": "v", "shown": "v"})
  assert _held_back(graph) == {}


def test_a_source_is_held_back_by_the_node_that_its_reason_names():
  graph = _graph(
      {"next": _STEP, "a": _STEP, "saver": _STEP, "train": _STEP}, ["next a", "a train"],
      {"next": "saver", "a": "saver", "saver": "saver", "train": "train"}, step_only=("saver", "train"))
  assert _held_back(graph, ["next"]) == {"saver": 2}


def test_a_second_cause_that_the_reason_does_not_name_counts():
  # The reason of update names only v, but it would stay in the step without v, too.
  graph = _graph(
      {"next": _AHEAD, "v": _STEP, "update": _STEP, "after": _STEP, "train": _STEP},
      ["next update", "v update", "update after", "after train"],
      {"v": "v", "update": "v", "after": "v", "train": "train"}, step_only=("v", "update", "train"))
  assert _held_back(graph) == {}


def test_a_loop_ends_and_counts_once():
  graph = _graph(
      {"next": _AHEAD, "v": _STEP, "merge": _STEP, "body": _STEP, "train": _STEP},
      ["next merge", "v merge", "merge body", "body merge", "merge train"],
      {"v": "v", "merge": "v", "body": "v", "train": "train"}, step_only=("v", "train"))
  assert _held_back(graph) == {"v": 2}


def test_what_runs_once_holds_nothing_back():
  graph = _graph(
      {"next": _AHEAD, "init": explain_graph.ONCE, "a": _STEP, "train": _STEP}, ["next a", "init a", "a train"],
      {"init": "init", "a": "a", "train": "train"}, step_only=("init", "a", "train"))
  assert _held_back(graph) == {"a": 1}


def test_advice_names_the_node_its_reason_and_what_to_do():
  advice, = limiting_nodes.advice(_CHAIN, [])
  assert (advice.node.name, advice.node.why, advice.nodes, advice.advice) == ("v", "has the reason v", 2, "Change v.")


def _tables(count):
  """A graph in which each of `count` tables keeps two nodes in the step, and another op keeps one."""
  sides = {"next": _AHEAD, "other": _STEP, "train": _STEP}
  edges, reasons = ["next other", "other train"], {"other": "other", "train": "train"}
  for i in range(count):
    sides |= {f"t_{i}": _STEP, f"row_{i}": _STEP, f"sum_{i}": _STEP}
    edges += [f"next row_{i}", f"t_{i} row_{i}", f"row_{i} sum_{i}", f"sum_{i} train"]
    reasons |= {f"t_{i}": f"t_{i}", f"row_{i}": f"t_{i}", f"sum_{i}": f"t_{i}"}
  graph = _graph(sides, edges, reasons, step_only=("other", "train", *(f"t_{i}" for i in range(count))))
  return dataclasses.replace(
      graph, whys=tuple(
          dataclasses.replace(why, advice="Do it." if "reason t_" in why.text else why.advice) for why in graph.whys))


def test_equal_advice_for_many_nodes_is_one_piece():
  of_tables, other = limiting_nodes.advice(_tables(12), [])
  assert (of_tables.node.name, of_tables.nodes, of_tables.advice) == ("t_0", 24, "Do it.")
  assert of_tables.others == tuple(f"t_{i}" for i in range(1, 12))
  assert (other.node.name, other.others) == ("other", ())
  assert explain_text.advice(of_tables) == (
      "Up to 24 nodes are in the step only because of one of 12 (Op): 't_0', 't_1', 't_2' and 9 more. Do it.")


def test_two_nodes_have_advice_each():
  assert [item.node.name for item in limiting_nodes.advice(_tables(2), [])] == ["t_0", "t_1", "other"]


def test_what_depends_on_records_alone_is_counted_of_what_is_ahead_and_what_is_not():
  graph = _graph(
      {
          "next": _AHEAD, "a": _AHEAD, "draw": _STEP, "v": _STEP, "row": _STEP, "asked": _STEP,
          "init": explain_graph.ONCE
      },
      ["next a", "a draw", "v row", "draw row", "a asked", "init v"],
      {"draw": "draw", "v": "v", "row": "v", "asked": "nothing"}, step_only=("v",))
  assert limiting_nodes.on_records_alone(graph, []) == {"draw"}


def _add_marked_model() -> list[tf.Tensor]:
  """Adds a model that trains, with two marked nodes; returns these."""
  numbers = report_graphs.batch()["numbers"]
  first = tf.identity(numbers, name="first")
  second = tf.identity(numbers + 1.0, name="second")
  after = tf.nn.relu(tf.nn.relu(first, name="after"), name="after_that")
  weight = tf.get_variable("weight", [3])
  loss = tf.reduce_sum((after + second) * weight)
  tf.train.GradientDescentOptimizer(0.1).minimize(loss)
  return [first, second]


@pytest.mark.parametrize("kept", ["first", "second"])
def test_as_many_nodes_run_ahead_as_the_advice_says(kept):
  marked = _add_marked_model()
  before = tf.staging.explain()
  tf.train.mark_target_node(marked)
  both = tf.staging.explain()
  counts = {advice.node.name: advice.nodes for advice in both.advice}
  assert counts["first"] == 3 and counts["second"] == 1
  with tf.Graph().as_default():
    marked = {tensor.op.name: tensor for tensor in _add_marked_model()}
    tf.train.mark_target_node(marked[kept])
    one = tf.staging.explain()
  freed, = {"first", "second"} - {kept}
  assert len(one.stages[0].nodes) - len(both.stages[0].nodes) == counts[freed]
  assert len(before.stages[0].nodes) > len(one.stages[0].nodes)


def test_the_text_gives_the_advice_that_frees_most_before_the_stages():
  tf.train.mark_target_node(_add_marked_model())
  text = str(tf.staging.explain())
  assert text.index("What would let more run ahead:") < text.index("Stage 'prefetch'")
  last = text.partition("What would let more run ahead:\n")[2].splitlines()
  assert last[0].lstrip().startswith(
      "Up to 3 nodes are in the step only because of 'first' (Identity), which is marked by tf.train.mark_target_node."
      " Do not give the node to tf.train.mark_target_node")
  assert any("Up to 1 node is in the step only because of 'second' (Identity)" in line for line in last)


def test_the_text_gives_few_pieces_of_advice():
  tf.train.mark_target_node(_add_marked_model())
  report = tf.staging.explain()
  text = str(dataclasses.replace(report, advice=report.advice * 20))
  assert text.count("only because of") == 5
