# SPDX-License-Identifier: Apache-2.0
"""`tf.train.mark_target_node` marks nodes in their graph."""

import pytest
import tensorflow as tf


def _marked(graph) -> set[str]:
  return {node.name for node in graph.as_graph_def().node if node.attr["_staging_target"].b}


def _warnings(caplog) -> list[str]:
  """Returns the warnings about entries of `target_nodes`."""
  return [message for message in caplog.messages if message.startswith("target_nodes")]


def test_tensors_operations_and_variables_mark_their_nodes(graph):
  tensor = tf.constant(1, name="tensor")
  operation = tf.no_op(name="operation")
  variable = tf.get_variable("variable", [2])
  tf.train.mark_target_node([tensor, {"a": operation, "b": (variable,)}])
  assert _marked(graph) == {"tensor", "operation", "variable"}


def test_a_single_tensor_needs_no_list(graph):
  tf.train.mark_target_node(tf.constant(1, name="tensor"))
  assert _marked(graph) == {"tensor"}


def test_marks_add_up_and_stay_in_their_graph(graph):
  tf.train.mark_target_node([tf.constant(1, name="first")])
  with tf.Graph().as_default() as other:
    tf.train.mark_target_node([tf.constant(1, name="elsewhere")])
  tf.train.mark_target_node([tf.constant(1, name="second")])
  assert _marked(graph) == {"first", "second"}
  assert _marked(other) == {"elsewhere"}


def test_a_sparse_tensor_marks_the_nodes_of_its_components(graph):
  tf.train.mark_target_node(tf.sparse.placeholder(tf.int32, name="sparse"))
  assert len(_marked(graph)) == 3


def test_marking_does_not_change_results():
  tensor = tf.constant(1) + 1
  tf.train.mark_target_node([tensor])
  with tf.Session() as sess:
    assert sess.run(tensor) == 2


@pytest.mark.parametrize("name", ["outer/inner", "outer/inner:0"])
def test_a_name_marks_the_node_that_has_it(graph, caplog, name):
  with tf.name_scope("outer"):
    tf.constant(1, name="inner")
  tf.train.mark_target_node([name])
  assert _marked(graph) == {"outer/inner"}
  assert not _warnings(caplog)


@pytest.mark.parametrize("name", ["loss", "loss:0", "tensor:1", "tensor:x", "tensor:0:0", "^tensor", ""])
def test_a_name_that_the_graph_lacks_warns(graph, caplog, name):
  tensor = tf.constant(1, name="tensor")
  tf.train.mark_target_node({"a": name, "b": tensor})
  assert _marked(graph) == {"tensor"}
  warning, = _warnings(caplog)
  assert f"target_nodes['a'] is {name!r}, which names neither a tensor nor an operation" in warning
  assert "takes tensors, operations and variables" in warning


def test_none_warns(graph, caplog):
  tf.train.mark_target_node([tf.constant(1, name="tensor"), None])
  assert _marked(graph) == {"tensor"}
  warning, = _warnings(caplog)
  assert "target_nodes[1] is None and marks nothing. tf.train.mark_target_node takes" in warning


@pytest.mark.parametrize("use_resource", [True, False], ids=["resource", "reference"])
def test_a_partitioned_variable_marks_its_parts_and_warns(graph, caplog, use_resource):
  variable = tf.get_variable(
      "variable", [4], partitioner=tf.fixed_size_partitioner(2), use_resource=use_resource)
  tf.train.mark_target_node([variable])
  assert _marked(graph) == {"variable/part_0", "variable/part_1"}
  warning, = _warnings(caplog)
  assert "target_nodes[0] is the PartitionedVariable 'variable': each of its 2 parts is marked" in warning


@pytest.mark.parametrize("entry", [3, b"tensor", object(), {"tensor"}], ids=type)
def test_other_entries_are_refused(graph, entry):
  tensor = tf.constant(1, name="tensor")
  with pytest.raises(TypeError, match=r"target_nodes\[1\] must be a tensor, .* got"):
    tf.train.mark_target_node([tensor, entry])
  assert not _marked(graph)


@pytest.mark.parametrize("empty", [[], (), {}, [[], {}]], ids=repr)
def test_an_empty_structure_marks_nothing(graph, caplog, empty):
  tf.constant(1, name="tensor")
  tf.train.mark_target_node(empty)
  assert not _marked(graph)
  assert not _warnings(caplog)


def test_a_monitored_training_session_marks_its_target_nodes(graph):
  tensor = tf.constant(1, name="tensor")
  with tf.train.MonitoredTrainingSession(target_nodes_or_tensors=[tensor]) as sess:
    assert sess.run(tensor) == 1
  assert _marked(graph) == {"tensor"}


def test_a_monitored_training_session_takes_an_empty_list_and_names(graph, caplog):
  tensor = tf.constant(1, name="tensor")
  with tf.train.MonitoredTrainingSession(target_nodes_or_tensors=[]) as sess:
    assert sess.run(tensor) == 1
  assert not _marked(graph)
  with tf.train.MonitoredTrainingSession(target_nodes_or_tensors=["tensor:0", None, "missing"]) as sess:
    assert sess.run(tensor) == 1
  assert _marked(graph) == {"tensor"}
  assert [warning.split()[0] for warning in _warnings(caplog)] == ["target_nodes[1]", "target_nodes[2]"]
