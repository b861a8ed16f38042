# SPDX-License-Identifier: Apache-2.0
"""`tf.train.mark_target_node` marks nodes in their graph."""

import pytest
import tensorflow as tf


def _marked(graph) -> set[str]:
  return {node.name for node in graph.as_graph_def().node if node.attr["_staging_target"].b}


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


@pytest.mark.parametrize("entry", ["loss:0", 3, None])
def test_other_entries_are_refused(graph, entry):
  tensor = tf.constant(1, name="tensor")
  with pytest.raises(TypeError, match=r"target_nodes\[1\] must be a tensor, .* got"):
    tf.train.mark_target_node([tensor, entry])
  assert not _marked(graph)


def test_an_empty_list_is_refused():
  with pytest.raises(ValueError, match=r"target_nodes must hold at least one node, got \[\]"):
    tf.train.mark_target_node([])


def test_a_monitored_training_session_marks_its_target_nodes(graph):
  tensor = tf.constant(1, name="tensor")
  with tf.train.MonitoredTrainingSession(target_nodes_or_tensors=[tensor]) as sess:
    assert sess.run(tensor) == 1
  assert _marked(graph) == {"tensor"}
