# SPDX-License-Identifier: Apache-2.0
"""`tf.async_embedding_mark_node`: what leads to a marked tensor runs ahead of the step."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.training import async_embedding_stage

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.testing.smart_stage_sessions import async_embedding_config

_STAGE = "async_embedding"
_STEPS = 12


@contextlib.contextmanager
def _session(config=None):
  with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      yield sess


def _keys():
  """Keys of which no two steps that follow each other have one in common, behind a manual stage."""
  rows = np.array([[step % 6, 6 + step % 6] for step in range(_STEPS)], np.int64)
  dataset = tf.data.Dataset.from_tensor_slices({"key": rows})
  return tf.staged(tf.data.make_one_shot_iterator(dataset).get_next())["key"]


def _chosen_by_a_product(mark=True):
  """Rows of a table that an indicator chooses, the loss of a model with them, and the op that trains it."""
  table = tf.get_variable("table", [12, 3], initializer=tf.random_normal_initializer(seed=1))
  weights = tf.get_variable("weights", [3, 1], initializer=tf.random_normal_initializer(seed=2))
  rows = tf.matmul(tf.one_hot(_keys(), 12), table, name="rows")
  if mark:
    tf.async_embedding_mark_node(rows)
  loss = tf.reduce_sum(tf.square(tf.matmul(rows, weights) - 1.0), name="loss")
  return rows, loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)


def _stages(config):
  return {stage.name: stage for stage in tf.staging.explain(config=config).stages}


@pytest.mark.parametrize("smart_stage", [False, True], ids=["alone", "smart_stage"])
def test_rows_that_a_product_chooses_run_ahead(smart_stage):
  _chosen_by_a_product()
  config = async_embedding_config(smart_stage, capacity=2)
  stage = _stages(config)[_STAGE]
  assert stage.variables == ("table",)
  assert "rows" in stage.nodes
  assert not any(name.startswith("gradients") for name in stage.nodes)


@pytest.mark.parametrize("smart_stage", [False, True], ids=["alone", "smart_stage"])
def test_without_the_mark_they_do_not(smart_stage):
  _chosen_by_a_product(mark=False)
  assert _STAGE not in _stages(async_embedding_config(smart_stage))


def _losses(config, use_class):
  with tf.Graph().as_default() as graph:
    _, loss, train = _chosen_by_a_product()
    if use_class:
      async_embedding_stage.AsyncEmbeddingStage(1, 2).stage(graph)
    losses = []
    with _session(config) as sess, pytest.raises(tf.errors.OutOfRangeError):
      while True:
        losses.append(sess.run([loss, train])[0])
  return losses


@pytest.mark.parametrize("way", ["config", "class"])
def test_the_losses_are_those_of_a_step_of_its_own(way):
  """The table is read as a whole, but rows that no step updates meanwhile are exact."""
  plain = tf.ConfigProto()
  ahead = async_embedding_config(False, capacity=2) if way == "config" else tf.ConfigProto()
  for config in (plain, ahead):
    config.intra_op_parallelism_threads = config.inter_op_parallelism_threads = 1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
  losses = _losses(ahead, use_class=way == "class")
  assert losses == _losses(plain, use_class=False)
  assert len(losses) == _STEPS


@pytest.mark.parametrize("mark", [False, True])
def test_an_indicator_column_runs_ahead_if_it_is_marked(mark):
  """It leads to no lookup, so do_async_embedding does not find it by itself."""
  column = tf.feature_column.indicator_column(tf.feature_column.categorical_column_with_identity("key", 12))
  dense = tf.feature_column.input_layer({"key": _keys()}, [column])
  if mark:
    tf.async_embedding_mark_node(dense)
  weights = tf.get_variable("weights", [12, 3])
  loss = tf.reduce_sum(tf.matmul(dense, weights))
  train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
  config = async_embedding_config(smart_stage=False)
  stage = _stages(config).get(_STAGE)
  assert (stage is not None) == mark
  if stage:
    assert dense.op.name in stage.nodes and not stage.variables
    with _session(config) as sess:
      assert np.isfinite(sess.run([loss, train])[0])
      assert {each.name for each in tf.staging.stats(sess)} == {_STAGE, "prefetch"}


def test_an_indicator_column_beside_a_lookup_runs_ahead_without_a_mark():
  key = tf.feature_column.categorical_column_with_identity("key", 12)
  columns = [tf.feature_column.indicator_column(key), tf.feature_column.embedding_column(key, 4)]
  dense = tf.feature_column.input_layer({"key": _keys()}, columns)
  loss = tf.reduce_sum(tf.matmul(dense, tf.get_variable("weights", [16, 3])))
  tf.train.GradientDescentOptimizer(0.1).minimize(loss)
  stage = _stages(async_embedding_config(smart_stage=False))[_STAGE]
  assert dense.op.name in stage.nodes
  assert any("indicator" in name for name in stage.nodes) and len(stage.variables) == 1


def test_what_smart_stage_runs_ahead_gets_no_second_stage():
  dense = tf.one_hot(_keys(), 12)
  tf.async_embedding_mark_node(dense)
  loss = tf.reduce_sum(dense * tf.get_variable("weights", [12]))
  tf.train.GradientDescentOptimizer(0.1).minimize(loss)
  assert set(_stages(async_embedding_config(smart_stage=True))) == {"prefetch"}


def test_a_lookup_elsewhere_in_a_variable_that_a_mark_reads_stays_in_the_step():
  table = tf.get_variable("table", [12, 3], use_resource=True)
  keys = _keys()
  ahead = tf.matmul(tf.one_hot(keys, 12), table, name="ahead")
  tf.async_embedding_mark_node(ahead)
  whole = tf.reduce_sum(table)
  row = tf.nn.embedding_lookup(table, keys, name="row")
  loss = tf.reduce_sum(tf.square(ahead) + tf.square(row)) + whole
  tf.train.GradientDescentOptimizer(0.1).minimize(loss)
  stage = _stages(async_embedding_config(smart_stage=False))[_STAGE]
  assert ahead.op.name in stage.nodes
  assert not any(name.startswith("row") for name in stage.nodes)


def test_the_class_adds_a_stage_behind_that_of_the_input(graph):
  _chosen_by_a_product()
  ops_of = lambda kind: [op.name for op in graph.get_operations() if op.type == kind]
  assert [len(ops_of(kind)) for kind in (vocabulary.PUT_OP, vocabulary.TAKE_OP)] == [1, 1]
  async_embedding_stage.AsyncEmbeddingStage(1, 1, None).stage(graph)
  assert ops_of(vocabulary.TAKE_OP) == ["prefetch/TensorBufferTake", "async_embedding/TensorBufferTake"]
  rows = graph.get_operation_by_name("rows")
  assert [user.type for user in rows.outputs[0].consumers()] == [vocabulary.PUT_OP]


def test_a_mark_on_the_way_to_another_one_stays_on_its_way(graph):
  rows, _, _ = _chosen_by_a_product()
  tf.async_embedding_mark_node(graph.get_tensor_by_name("one_hot:0"))
  async_embedding_stage.AsyncEmbeddingStage().stage(graph)
  assert rows.op.inputs[0].op.type == "OneHot"


def test_the_class_needs_a_mark(graph):
  tf.constant(1)
  with pytest.raises(ValueError, match="no marked tensor. Mark .* tf.async_embedding_mark_node"):
    async_embedding_stage.AsyncEmbeddingStage().stage(graph)
  tf.async_embedding_mark_node(tf.constant(1, name="alone"))
  with pytest.raises(ValueError, match=r"Nothing uses the marked tensors of \['alone'\]"):
    async_embedding_stage.AsyncEmbeddingStage().stage(graph)


@pytest.mark.parametrize("argument", ["threads_num", "capacity"])
def test_the_arguments_of_the_class_are_checked(argument):
  with pytest.raises(ValueError, match=f"{argument} must be .* got 0"):
    async_embedding_stage.AsyncEmbeddingStage(**{argument: 0})


def test_the_parts_of_a_sparse_tensor_are_marked(graph):
  tf.async_embedding_mark_node({"ids": tf.sparse.from_dense([[1, 0]])})
  marked = [op for op in graph.get_operations() if vocabulary.EMBEDDING_ATTR in op.node_def.attr]
  assert marked


@pytest.mark.parametrize("entry", [None, 3, "tensor:0", object()], ids=["None", "a number", "a name", "an object"])
def test_other_entries_are_refused(graph, entry):
  tensor = tf.constant(1)
  with pytest.raises(TypeError, match=r"embedding_tensor\[1\] must be a tensor of a graph, got"):
    tf.async_embedding_mark_node([tensor, entry])
  assert vocabulary.EMBEDDING_ATTR not in tensor.op.node_def.attr


@pytest.mark.parametrize("empty", [[], {}], ids=repr)
def test_nothing_to_mark_is_refused(empty):
  with pytest.raises(ValueError, match="at least one tensor, got"):
    tf.async_embedding_mark_node(empty)
