# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.explain` reports what is staged, what crosses the boundary, and why the rest stays in the step."""

import dataclasses
import html
import sys
import textwrap

import pytest
import tensorflow as tf

from tensorflow_staging.python.explain import explain_graph
from tensorflow_staging.python.testing import report_graphs
from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util


def _outside(stage) -> dict[str, str]:
  return {node.name: str(node) for node in stage.outside}


def test_the_nodes_between_the_iterator_and_the_variable_are_staged():
  report_graphs.model()
  report = tf.staging.explain(config=smart_stage_sessions.smart_stage_config())
  stage, = report.stages
  assert (stage.name, stage.by_hand, stage.sources) == ("prefetch", False, ("IteratorGetNext",))
  assert stage.nodes == ("IteratorGetNext", "hash/bucket")
  assert report.num_nodes == len(tf.get_default_graph().get_operations())
  assert report.unstaged_sources == ()


def test_the_boundary_has_types_shapes_and_bytes():
  report_graphs.model()
  stage, = tf.staging.explain().stages
  boundary = {tensor.name: tensor for tensor in stage.boundary}
  assert sorted(boundary) == ["IteratorGetNext:0", "hash/bucket:0"]
  numbers = boundary["IteratorGetNext:0"]
  assert (numbers.dtype, numbers.shape.as_list()) == (tf.float32, [None, 3])
  assert (numbers.min_bytes, numbers.is_exact) == (12, False)


def test_bytes_are_exact_where_the_shape_is_known():
  for feature in report_graphs.batch(drop_remainder=True).values():
    tf.train.mark_target_node(tf.identity(feature))
  words, numbers = sorted(tf.staging.explain().stages[0].boundary, key=lambda tensor: tensor.dtype != tf.string)
  assert (numbers.min_bytes, numbers.is_exact) == (24, True)
  assert (words.min_bytes, words.is_exact) == (None, False)


def test_a_tensor_of_unknown_rank_has_unknown_bytes():
  record = tf.numpy_function(lambda x: x, [test_util.dataset_record(3)], tf.int64)
  tf.train.mark_target_node(tf.identity(record))
  report = tf.staging.explain()
  tensor, = report.stages[0].boundary
  assert (tensor.shape.rank, tensor.min_bytes) == (None, None)
  assert "int64 of unknown rank, unknown size" in str(report)


def test_the_first_nodes_outside_say_which_variable_keeps_them():
  report_graphs.model()
  stage, = tf.staging.explain().stages
  assert _outside(stage) == {
      "embedding_lookup": "'embedding_lookup' (GatherV2) depends on variable 'embedding' (VariableV2)",
      "mul": "'mul' (Mul) depends on variable 'embedding' (VariableV2)",
  }


def test_a_resource_variable_is_named_and_not_the_op_that_reads_it():
  key = tf.identity(test_util.dataset_record(3))
  table = tf.get_variable("table", [10], use_resource=True)
  tf.nn.embedding_lookup(table, key, name="lookup")
  stage, = tf.staging.explain().stages
  assert _outside(stage)["lookup"] == "'lookup' (ResourceGather) depends on variable 'table' (VarHandleOp)"


def test_names_of_stages_are_those_that_a_session_will_make():
  report_graphs.model()
  config = smart_stage_sessions.smart_stage_config(name="ahead")
  assert [stage.name for stage in tf.staging.explain(config=config).stages] == ["ahead"]


def test_a_session_stages_what_the_report_says():
  loss = report_graphs.model()
  staged = tf.staging.explain().stages[0].nodes
  with smart_stage_sessions.smart_stage_session() as sess:
    ops_of_step = smart_stage_sessions.staged_ops(sess, loss)
  types = {tf.get_default_graph().get_operation_by_name(name).type for name in staged}
  assert types == {"IteratorGetNext", "StringToHashBucketFast"}
  assert not types & ops_of_step


def test_another_graph_than_the_default_one():
  report_graphs.model()
  with tf.Graph().as_default() as other:
    tf.constant(1)
  assert tf.staging.explain().stages
  assert not tf.staging.explain(other).stages


def test_when_off_it_reports_what_would_be_staged():
  report_graphs.model()
  off = tf.staging.explain(config=tf.ConfigProto())
  on = tf.staging.explain(config=smart_stage_sessions.smart_stage_config())
  assert str(off).startswith("SmartStage is off (optimizer_options.do_smart_stage). If it were on: 2 nodes, all ")
  assert str(on).startswith(
      "SmartStage is on: 2 nodes, all that depend on records alone, run ahead of the step, in 1 stage. The graph")
  assert not off.enabled and dataclasses.replace(off, enabled=True) == on


def test_the_text_has_every_part_of_the_report():
  report_graphs.model()
  text = str(tf.staging.explain(config=smart_stage_sessions.smart_stage_config()))
  for line in [
      "Stage 'prefetch', made by SmartStage of 2 nodes.",
      "'IteratorGetNext:0' float32 [?, 3], at least 12 bytes",
      "'hash/bucket:0' int64 [?], at least 8 bytes",
      "2 tensors of at least 20 bytes",
      "'embedding_lookup' (GatherV2) depends on variable 'embedding' (VariableV2)",
  ]:
    assert line in text


def test_strings_say_that_their_size_is_unknown():
  tf.train.mark_target_node(tf.identity(report_graphs.batch()["word"]))
  assert "string [?], unknown size (string)" in str(tf.staging.explain())


def test_a_graph_without_a_source():
  tf.get_variable("weight", initializer=1.0)
  report = tf.staging.explain()
  assert report.stages == report.unstaged_sources == ()
  assert "the graph has no source of records" in str(report)


def test_a_source_that_no_node_of_the_step_needs():
  tf.identity(test_util.dataset_record(3), name="fetched")
  report = tf.staging.explain()
  assert not report.stages
  assert [str(source) for source in report.unstaged_sources] == [
      "'IteratorGetNext' (IteratorGetNext) is computed only if a run asks for it"
  ]
  assert f"Sources of records that do not run ahead:\n    {report.unstaged_sources[0]}" in str(report)
  assert "tf.train.mark_target_node" in str(report)


def test_a_source_whose_position_is_saved_runs_ahead():
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(3))
  tf.data.experimental.make_saveable_from_iterator(iterator)
  tf.train.mark_target_node(tf.identity(iterator.get_next()))
  stage, = tf.staging.explain().stages
  assert stage.nodes == ("IteratorGetNext",)


def test_when_every_user_of_the_source_is_marked_only_the_source_is_staged():
  tf.train.mark_target_node(tf.identity(test_util.dataset_record(3), name="marked"))
  stage, = tf.staging.explain().stages
  assert stage.nodes == ("IteratorGetNext",)
  assert "marked by tf.train.mark_target_node" in _outside(stage)["marked"]


def test_reasons_are_counted_and_the_most_frequent_comes_first():
  report_graphs.model()
  report = tf.staging.explain()
  reasons = report.reasons
  counts = [reason.nodes for reason in reasons]
  assert counts == sorted(counts, reverse=True)
  assert sum(counts) == report.num_nodes - 2 - report.graph.count(explain_graph.ONCE)
  assert {"depends on no source of records"} < {reason.example.why for reason in reasons}


def test_what_runs_once_is_apart_from_the_step():
  report_graphs.model()
  tf.global_variables_initializer()
  report = tf.staging.explain()
  once = {name for name, _, side in report.graph.nodes if side == explain_graph.ONCE}
  assert once >= {"embedding/Assign", "embedding/Initializer/random_uniform", "init", "OneShotIterator"}
  assert not once & {"embedding", "embedding/read", "embedding_lookup", "IteratorGetNext", "loss"}
  assert not once & {reason.example.name for reason in report.reasons}
  assert f"Runs once, before the first step: {len(once)} nodes." in str(report)


def test_tables_and_initialisers_of_iterators_run_once():
  dataset = tf.data.Dataset.from_tensor_slices(["a", "b"])
  iterator = tf.data.make_initializable_iterator(dataset)
  initializer = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1.0, 2.0])
  table = tf.lookup.StaticHashTable(initializer, 0.0)
  looked_up = table.lookup(iterator.get_next())
  tf.multiply(looked_up, tf.get_variable("weight", []))
  tf.tables_initializer()
  report = tf.staging.explain()
  sides = {name: side for name, _, side in report.graph.nodes}
  once = {name for name, side in sides.items() if side == explain_graph.ONCE}
  assert once >= {iterator.initializer.name, table.resource_handle.op.name, "init_all_tables", "TensorSliceDataset"}
  assert any(op == "LookupTableImportV2" and name in once for name, op, _ in report.graph.nodes)
  assert sides[looked_up.op.name] == 0


def test_the_text_stays_short_with_many_variables():
  record = tf.cast(test_util.dataset_record(3), tf.float32)
  for i in range(100):
    tf.multiply(record, tf.get_variable(f"weight_{i}", initializer=1.0))
  text = str(tf.staging.explain())
  assert "... and 80 more" in text
  assert len(text.splitlines()) <= 40


def test_nodes_that_depend_on_different_variables_have_one_reason():
  record = tf.cast(test_util.dataset_record(3), tf.float32)
  with tf.variable_scope("", use_resource=True):
    loss = tf.add_n([record * tf.get_variable(f"weight_{i}", initializer=1.0) for i in range(300)])
  tf.train.AdamOptimizer().minimize(loss)
  report = tf.staging.explain()
  # Each kind of reason once: this graph has variables, what depends on them, constants and a dataset.
  assert len(report.reasons) < 8
  reason, = (reason for reason in report.reasons if reason.example.why.startswith("depends on variable 'weight_0'"))
  assert reason.nodes > 3000
  # Each variable has two slots, and the optimizer has two powers.
  assert len(reason.about) == len(set(reason.about)) == 3 * 300 + 2
  assert reason.about[:2] == ("weight_0", "weight_1")
  line, = (line for line in str(report).splitlines() if f"{reason.nodes} nodes" in line)
  others = "others on 'weight_1', 'weight_2', 'weight_3' and 898 more"
  assert line == f"    {reason.nodes} nodes, for example {reason.example}; {others}"


def test_two_variables_are_both_named():
  record = tf.cast(test_util.dataset_record(3), tf.float32)
  for name in ("first", "second"):
    tf.multiply(record, tf.get_variable(name, initializer=1.0))
  assert "(Identity) depends on variable 'first' (VariableV2); others on 'second'\n" in str(tf.staging.explain())


def test_the_text_stays_short_with_many_stages():
  report_graphs.model()
  report = tf.staging.explain()
  text = str(dataclasses.replace(report, stages=report.stages * 30))
  assert text.count("Stage 'prefetch'") == 20
  assert "... and 10 more stages" in text


def test_a_manual_stage_to_which_nothing_is_added():
  record = tf.staged(test_util.dataset_record(3))
  tf.train.mark_target_node(tf.identity(record, name="marked"))
  report = tf.staging.explain()
  stage, = report.stages
  assert (stage.by_hand, stage.nodes) == (True, ())
  assert [tensor.dtype for tensor in stage.boundary] == [tf.int64]
  assert "marked" in _outside(stage)
  assert "Manual stage 'prefetch', to which nothing is added." in str(report)


def test_a_manual_stage_says_what_it_reads_that_others_use():
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(9))
  mode = tf.get_variable("mode", [], tf.int64, use_resource=True)
  mode.assign(1, name="switch")
  number = iterator.get_next(name="number")
  tf.staged(number + mode)
  iterator.get_next(name="beside")
  report = tf.staging.explain()
  stage, = report.stages
  assert [(read.op, read.other_readers) for read in stage.iterators] == [("OneShotIterator", ("beside",))]
  assert [(state.name, state.changers) for state in stage.changing] == [("mode", ("mode/Assign", "switch"))]
  assert "of which 'beside' may take elements, too" in str(report)
  assert "'mode' (VarHandleOp), which 'mode/Assign', 'switch' may change" in str(report)
  # The record carries the element, for a step that fetches it.
  assert [tensor.name for tensor in stage.elements] == ["number:0"]


def test_the_label_beside_a_manual_stage_is_part_of_its_record():
  features, label = tf.data.make_one_shot_iterator(tf.data.Dataset.range(9).map(lambda i: (i, i))).get_next()
  tf.train.mark_target_node([tf.staged(features) + label])
  stage, = tf.staging.explain().stages
  assert [tensor.name for tensor in stage.boundary] == ["prefetch/TensorBufferTake:0", label.name]


def test_a_manual_stage_that_is_extended():
  record = tf.staged(test_util.dataset_record(3))
  key = tf.add(record, 1, name="key")
  tf.gather(tf.get_variable("embedding", [10]), key)
  report = tf.staging.explain()
  stage, = report.stages
  # The Take stays in the step, so it is not listed.
  assert (stage.by_hand, stage.nodes) == (True, ("key",))
  assert [tensor.name for tensor in stage.boundary] == ["key:0"]
  assert "If it were on: 1 node, the only one that depends on records alone, would run" in str(report)
  assert "Manual stage 'prefetch', which SmartStage would extend by 1 node." in str(report)


def test_a_join_is_not_called_a_stage_of_tf_staged():
  record = tf.prefetch_join([test_util.dataset_record(3), test_util.dataset_record(4)])
  tf.train.mark_target_node(tf.identity(record))
  text = str(tf.staging.explain())
  assert "nothing can be added to the manual stages" in text
  assert "Manual stage 'prefetch', to which nothing is added." in text
  assert "tf.staged" not in text


def test_a_variable_that_a_manual_stage_reads_does_not_run_ahead():
  weight = tf.get_variable("weight", [10])
  tf.staged(tf.gather(weight, test_util.dataset_record(3), name="ahead"))
  report = tf.staging.explain()
  sides = {name: side for name, _, side in report.graph.nodes}
  assert sides["ahead"] == 0
  assert sides["weight"] == explain_graph.STEP
  assert sides["prefetch/TensorBufferResume"] == explain_graph.CONTROL
  assert "'weight' (VariableV2) is a variable" in str(report)
  # The ops that start and stop the stage are in no list.
  assert "TensorBuffer" not in str(report).partition("In no stage")[2]


def test_two_iterators_make_two_stages():
  for name in ("first", "second"):
    with tf.name_scope(name):
      key = tf.identity(test_util.dataset_record(3), name="key")
      tf.gather(tf.get_variable(name, [10]), key)
  stages = tf.staging.explain().stages
  assert [(stage.name, stage.nodes) for stage in stages] == [
      ("prefetch", ("first/IteratorGetNext", "first/key")),
      ("prefetch_1", ("second/IteratorGetNext", "second/key")),
  ]


def test_a_configuration_that_a_session_would_refuse_is_refused():
  config = smart_stage_sessions.smart_stage_config()
  config.graph_options.optimizer_options.smart_stage_options.capacity = -2
  with pytest.raises(tf.errors.InvalidArgumentError, match=r"capacity is -2"):
    tf.staging.explain(config=config)


def test_options_of_another_graph_are_refused():
  config = smart_stage_sessions.smart_stage_config(graph=tf.Graph())
  with pytest.raises(ValueError, match="graph_key"):
    tf.staging.explain(config=config)


@pytest.mark.parametrize("arguments", [dict(graph="g"), dict(config="c"), dict(graph=tf.ConfigProto())])
def test_arguments_of_other_types(arguments):
  with pytest.raises(TypeError, match=r"^(graph|config) must be None,? (or )?a tf\..*got"):
    tf.staging.explain(**arguments)


def test_a_configuration_in_the_place_of_the_graph():
  with pytest.raises(TypeError, match=r"got a ConfigProto, .* call tf\.staging\.explain\(config=config\)\."):
    tf.staging.explain(tf.ConfigProto())


def test_eager_mode_needs_a_graph(run_forked, tmp_path):
  output = run_forked(
      """
      import tensorflow as tf
      try:
        tf.staging.explain()
      except ValueError as error:
        print(error)
      print(len(tf.staging.explain(tf.Graph()).stages))
      """, tmp_path, api_version="2")
  assert "eager execution is on" in output and output.endswith("\n0\n")


def test_a_report_cannot_be_changed():
  report = tf.staging.explain()
  with pytest.raises(dataclasses.FrozenInstanceError):
    report.enabled = True


_PROGRAM = """
    import tensorflow as tf
    rows = tf.data.Dataset.from_tensor_slices({{"word": ["a", "b"], "numbers": tf.ones([2, 3])}}).batch(2)
    features = tf.data.make_one_shot_iterator(rows).get_next()
    {stage}
    key = tf.string_to_hash_bucket_fast(features["word"], 10)
    row = tf.nn.embedding_lookup(tf.get_variable("embedding", [10, 3]), key)
    loss = tf.reduce_sum(row * features["numbers"])
    tf.train.AdamOptimizer().minimize(loss)
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.do_smart_stage = True
    print(*[f"{{stage.name}} {{len(stage.nodes)}}" for stage in tf.staging.explain(config=config).stages])
    # What a session adds to the graph does not count.
    tf.train.Saver()
    tf.Session(config=config).run(tf.global_variables_initializer())
    """


@pytest.mark.parametrize("stage", ["pass", "features = tf.staged(features)"], ids=["iterator", "staged"])
def test_the_log_has_the_number_of_the_report(tmp_path, stage):
  (tmp_path / "program.py").write_text(textwrap.dedent(_PROGRAM.format(stage=stage)))
  done = test_util.completed([sys.executable, "program.py"], tmp_path, TF_CPP_MIN_LOG_LEVEL="0")
  name, nodes = done.stdout.split()
  assert f"SmartStage: stage '{name}' runs {nodes} nodes ahead of the step" in done.stderr


def test_the_representation_is_short():
  report_graphs.model()
  report = tf.staging.explain(config=smart_stage_sessions.smart_stage_config())
  assert repr(report) == f"<StageReport: {str(report).splitlines()[0]}>"
  assert "run ahead of the step" in repr(report)


def test_a_notebook_shows_the_text():
  report_graphs.model()
  report = tf.staging.explain()
  page = report._repr_html_()
  assert page.startswith("<p><b>SmartStage is off")
  assert page.endswith("</pre>")
  for line in str(report).splitlines():
    assert html.escape(line.strip()) in page
