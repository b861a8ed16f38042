# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.unstaged` keeps names and values, leaves nothing of this package, and refuses what it cannot convert."""

import re

import pytest
import tensorflow as tf

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.stages import runner_options_collection
from tensorflow_staging.python.testing import test_util


def _run(graph_def, fetch, feeds=None, steps=1):
  """Imports a graph and runs steps; returns the value of one tensor in each."""
  with tf.Graph().as_default(), tf.Session() as sess:
    tf.import_graph_def(graph_def, name="")
    return [sess.run(fetch, feeds) for _ in range(steps)]


def _nodes(graph_def):
  return {node.name: node for node in graph_def.node}


def _assert_stageless(graph_def):
  for nodes in (graph_def.node, *(function.node_def for function in graph_def.library.function)):
    for node in nodes:
      assert not node.op.startswith("TensorBuffer"), node
      assert not [name for name in node.attr if name.startswith("_staging") or name == vocabulary.STREAM_ATTR], node


def test_a_step_computes_its_record(graph):
  tf.identity(tf.staged(test_util.dataset_record(3) * 10), name="out")
  before = graph.as_graph_def()
  graph_def = tf.staging.unstaged(graph)
  _assert_stageless(graph_def)
  assert _run(graph_def, "out:0", steps=3) == [0, 10, 20]
  assert graph.as_graph_def() == before
  assert tf.staging.unstaged(before) == graph_def


def test_a_graph_without_stages_stays_as_it_is(graph):
  tf.identity(test_util.dataset_record(3), name="out")
  assert tf.staging.unstaged(graph) == graph.as_graph_def()
  meta = tf.train.export_meta_graph()
  assert tf.staging.unstaged(meta) == meta


def test_outputs_choose_what_remains(graph):
  record = tf.staged({"x": test_util.dataset_record(3), "y": tf.constant(5, tf.int64)}, name="input")
  out = tf.add(record["x"], record["y"], name="out")
  tf.constant(7, name="other")
  graph_def = tf.staging.unstaged(graph, [out])
  assert "other" not in _nodes(graph_def)
  assert not [name for name in _nodes(graph_def) if "error_code" in name or "IteratorToString" in name]
  for outputs in (["out"], ["out:0"], [out.op], (out.name,), {"out"}):
    assert tf.staging.unstaged(graph, outputs) == graph_def
  assert _run(graph_def, "out:0") == [5]


def test_a_fed_record_computes_nothing_of_its_region(graph):
  failing = tf.debugging.check_numerics(tf.constant(1.0) / 0, "The region has run.")
  # TensorFlow's optimizers know the values of the others.
  x, y, z = tf.staged((failing, tf.constant(1.0), tf.cast(tf.size(tf.zeros([3])), tf.float32)), name="input")
  tf.add_n([x, 10 * y, 100 * z], name="out")
  graph_def = tf.staging.unstaged(graph, ["out"])
  assert _run(graph_def, "out:0", {x.name: 3, y.name: 4, z.name: 5}) == [543]
  with pytest.raises(tf.errors.InvalidArgumentError, match="The region has run"):
    _run(graph_def, "out:0", {y.name: 4, z.name: 5})


def test_marks_streams_and_colocation_go(graph):
  with tf.stream(1):
    record = tf.staged(test_util.dataset_record(3), stage_subgraph_stream_id=1)
  with graph.colocate_with(record.op.inputs[0].op if record.op.inputs else record.op):
    out = tf.identity(record, name="out")
  tf.train.mark_target_node([out])
  put = next(op for op in graph.get_operations() if op.type == vocabulary.PUT_OP)
  with graph.colocate_with(put):
    tf.identity(out, name="beside_the_put")
  graph_def = tf.staging.unstaged(graph)
  _assert_stageless(graph_def)
  assert "_class" not in _nodes(graph_def)["beside_the_put"].attr
  assert _run(graph_def, "beside_the_put:0") == [0]


def test_a_step_waits_for_what_the_call_was_made_under(graph):
  count = tf.get_variable("count", initializer=0, use_resource=True)
  with tf.control_dependencies([count.assign_add(1)]):
    record = tf.staged(test_util.dataset_record(3))
  with tf.control_dependencies([record]):
    tf.identity(count.read_value(), name="out")
  graph_def = tf.staging.unstaged(graph)
  with tf.Graph().as_default(), tf.Session() as sess:
    tf.import_graph_def(graph_def, name="")
    sess.run("count/Assign")
    assert [sess.run("out:0") for _ in range(2)] == [1, 2]


def test_the_buffer_of_a_stage_is_empty(graph):
  record = tf.staged(test_util.dataset_record(3), name="input")
  size = graph.get_tensor_by_name("input/TensorBufferSize:0")
  tf.add(record, size, name="out")
  graph_def = tf.staging.unstaged(graph)
  _assert_stageless(graph_def)
  assert _run(graph_def, ["out:0", size.name, "input/TensorBufferStats:0"]) == [[0, 0, b""]]


def test_handles_and_composite_tensors_go_through(graph):
  datasets = tf.data.Dataset.range(4).window(2)
  window = tf.data.make_one_shot_iterator(datasets).get_next()
  table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [5]), 0)
  ragged = tf.ragged.constant([[1, 2], [3]])
  variant, handle, ragged = tf.staged((tf.data.experimental.to_variant(window), table.resource_handle, ragged))
  del handle
  dataset = tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.int64))
  tf.add(tf.data.experimental.get_single_element(dataset.take(1)), 0, name="first")
  tf.identity(ragged.to_tensor(), name="rows")
  first, rows = _run(tf.staging.unstaged(graph), ["first:0", "rows:0"])[0]
  assert first == 0 and rows.tolist() == [[1, 2], [3, 0]]


def test_copies_of_a_stage_are_told_apart(graph):
  with tf.Graph().as_default():
    tf.identity(tf.staged(test_util.dataset_record(3), name="input"), name="out")
    meta = tf.train.export_meta_graph()
  # The buffers of these copies have the same name: a GraphDef does not bring the runners, which rename them.
  for scope in ("a", "b"):
    tf.import_graph_def(meta.graph_def, name=scope)
  tf.train.import_meta_graph(meta, import_scope="c")
  assert _run(tf.staging.unstaged(graph), ["a/out:0", "b/out:0", "c/out:0"]) == [[0, 0, 0]]


def test_a_meta_graph_keeps_its_signatures_and_collections(graph):
  out = tf.identity(tf.staged(test_util.dataset_record(3)), name="out")
  tf.add_to_collection("outputs", out)
  meta = tf.train.export_meta_graph()
  meta.signature_def["serve"].outputs["out"].name = "out:0"
  result = tf.staging.unstaged(meta)
  _assert_stageless(result.graph_def)
  assert runner_options_collection.NAME in meta.collection_def
  assert runner_options_collection.NAME not in result.collection_def
  assert {"serve"} == set(result.signature_def)
  assert "IdentityN" in [op.name for op in result.meta_info_def.stripped_op_list.op]
  assert not [op for op in result.meta_info_def.stripped_op_list.op if op.name.startswith("TensorBuffer")]
  with tf.Graph().as_default(), tf.Session() as sess:
    tf.train.import_meta_graph(result)
    assert sess.run(tf.get_collection("outputs")) == [0]


def test_the_body_of_a_function(graph):
  with tf.Graph().as_default():
    record = tf.staged((test_util.dataset_record(3), tf.constant(5, tf.int64)), name="input")
    tf.add(*record, name="out")
    size = tf.get_default_graph().get_tensor_by_name("input/TensorBufferSize:0")
    tf.identity(size, name="size")
    staged = tf.get_default_graph().as_graph_def()

  @tf.function
  def imported():
    elements = ["out:0", "input/TensorBufferTake:1", "input/TensorBufferSize:0"]
    return tf.import_graph_def(staged, return_elements=elements)

  for i, value in enumerate(imported()):
    tf.identity(value, name=f"value_{i}")
  graph_def = tf.staging.unstaged(graph)
  _assert_stageless(graph_def)
  assert len(graph_def.library.function) == len(graph.as_graph_def().library.function)
  assert _run(graph_def, ["value_0:0", "value_1:0", "value_2:0"]) == [[5, 5, 0]]


def test_a_join_in_a_function_has_to_be_fed_and_cannot_be(graph):
  with tf.Graph().as_default():
    tf.identity(tf.prefetch_join([test_util.dataset_record(3), test_util.dataset_record(3)], name="join"), name="out")
    staged = tf.get_default_graph().as_graph_def()
  function = tf.function(lambda: tf.import_graph_def(staged, return_elements=["out:0"]))
  tf.identity(function()[0], name="value")
  graph_def = tf.staging.unstaged(graph)
  _assert_stageless(graph_def)
  with pytest.raises(tf.errors.InvalidArgumentError, match="feed_0"):
    _run(graph_def, "value:0")


@pytest.mark.parametrize(
    "call, error, message", [
        (lambda graph: tf.staging.unstaged(None), TypeError, "graph must be a tf.Graph.*got None of type NoneType"),
        (lambda graph: tf.staging.unstaged("graph.pb"), TypeError, "got 'graph.pb' of type str"),
        (lambda graph: tf.staging.unstaged(graph, "out"), TypeError, "outputs must be None or a list.*got 'out'"),
        (lambda graph: tf.staging.unstaged(graph, 3), TypeError, "outputs must be None or a list.*got 3"),
        (lambda graph: tf.staging.unstaged(graph, []), ValueError, "at least one"),
        (lambda graph: tf.staging.unstaged(graph, [3]), TypeError, r"outputs\[0\].*got 3 of type int"),
        (lambda graph: tf.staging.unstaged(graph, ["out", "no"]), ValueError, r"outputs\[1\] is 'no', .* no such node"),
        (lambda graph: tf.staging.unstaged(graph, ["^out"]), ValueError, r"outputs\[0\] is '\^out'"),
        (lambda graph: tf.staging.unstaged(graph, ["input/TensorBufferPut"]), ValueError, "TensorBufferPut, which a"),
        (lambda graph: tf.staging.unstaged(tf.train.export_meta_graph(), ["out"]), ValueError, "MetaGraphDef.*graph_d"),
    ])
def test_wrong_arguments(graph, call, error, message):
  tf.identity(tf.staged(test_util.dataset_record(3), name="input"), name="out")
  with pytest.raises(error, match=message):
    call(graph)


def _staged_definition():
  with tf.Graph().as_default() as graph:
    tf.identity(tf.staged(test_util.dataset_record(3), name="input"), name="out")
    return graph.as_graph_def()


def _without_put(graph_def):
  graph_def.node.remove(_nodes(graph_def)["input/TensorBufferPut"])


def _with_another_type(graph_def):
  _nodes(graph_def)["input/TensorBufferTake"].attr["dtypes"].list.type[0] = tf.float32.as_datatype_enum


def _that_takes_itself(graph_def):
  _nodes(graph_def)["input/TensorBufferPut"].input[0] = "out"


def _without_an_input(graph_def):
  del _nodes(graph_def)["input/TensorBufferPut"].input[:]


def _of_a_session(graph_def):
  graph_def.node.add(name="passed", op="StagedNode")


def _with_a_dangling_input(graph_def):
  _nodes(graph_def)["input/TensorBufferPut"].input[0] = "gone"


def _with_a_name_twice(graph_def):
  _nodes(graph_def)["IteratorGetNext"].name = "input/TensorBufferTake"


def _with_a_name_that_is_needed(graph_def):
  graph_def.node.add(name="input/TensorBufferTake/feed_0", op="NoOp")


@pytest.mark.parametrize(
    "damage, message", [
        (_without_put, "Stage 'input' has a take, 'input/TensorBufferTake', but no put.*whole graph"),
        (_with_another_type, r"puts \['int64'\] with 'input/TensorBufferPut', but takes \['float32'\]"),
        (_that_takes_itself, "Stages take their own records: input/TensorBufferTake <- input/TensorBufferTake"),
        (_without_an_input, r"puts \['int64'\], but has 0 inputs"),
        (_of_a_session, "Node 'passed' is of type StagedNode.*graph of the program"),
        (_with_a_dangling_input, "has inputs from .*gone.*which the graph does not have"),
        (_with_a_name_twice, r"several nodes of one name: \['input/TensorBufferTake'\]"),
        (_with_a_name_that_is_needed, r"names its stages need: \['input/TensorBufferTake/feed_0'\]"),
    ])
def test_damaged_graphs(damage, message):
  graph_def = _staged_definition()
  damage(graph_def)
  before = graph_def.SerializeToString(deterministic=True)
  with pytest.raises(ValueError, match=message):
    tf.staging.unstaged(graph_def, ["out"])
  assert graph_def.SerializeToString(deterministic=True) == before


def test_runners_that_are_none(graph):
  tf.staged(test_util.dataset_record(3))
  meta = tf.train.export_meta_graph()
  meta.collection_def[runner_options_collection.NAME].bytes_list.value.append(b"\xff")
  with pytest.raises(ValueError, match="no PrefetchRunnerOptions"):
    tf.staging.unstaged(meta)


def test_a_feed_of_a_node_that_is_not_there(graph):
  offset = tf.placeholder(tf.int64, [], name="offset")
  one = tf.constant(1, tf.int64, name="one")
  tf.staged(test_util.dataset_record(3) + offset, feed_dict={offset: one}, name="input")
  meta = tf.train.export_meta_graph()
  meta.graph_def.node.remove(_nodes(meta.graph_def)["one"])
  with pytest.raises(ValueError, match=re.escape("Stage 'input' feeds 'offset:0' with 'one:0'") + ".*no node 'one'"):
    tf.staging.unstaged(meta)
