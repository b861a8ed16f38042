# SPDX-License-Identifier: Apache-2.0
"""Lookups in embedding variables that run ahead of the training step."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util
from tensorflow_staging.python.testing.smart_stage_sessions import async_embedding_config

_STAGE = "async_embedding"


@contextlib.contextmanager
def _session(config):
  with tf.Session(config=config) as sess:
    sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
    with tf.make_prefetch_hook().running(sess):
      yield sess


def _run_and_look(sess, fetches) -> tuple[list, list[str]]:
  """Runs a step; returns the values, and the op types of its lookups.

  Gradients also gather rows, but not those of a variable.
  """
  metadata = tf.RunMetadata()
  options = tf.RunOptions(output_partition_graphs=True, timeout_in_ms=test_util.WAIT_SECONDS * 1000)
  values = sess.run(fetches, options=options, run_metadata=metadata)
  nodes = [node for graph in metadata.partition_graphs for node in graph.node if not node.name.startswith("gradients")]
  return values, [node.op for node in nodes if node.op in ("ResourceGather", "GatherV2")]


def _ids(*rows) -> tf.Tensor:
  """The ids of a step: a row of `rows` each."""
  return tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(np.array(rows, np.int64))).get_next()


def _counter(use_resource):
  """An embedding of one row, which each step increases by 1, and what the step looks up in it."""
  ids = _ids(*[[0]] * 30)
  with tf.variable_scope("", use_resource=use_resource):
    table = tf.get_variable("table", [1, 1], initializer=tf.zeros_initializer())
  row = tf.nn.embedding_lookup(table, ids * 1)
  train = tf.train.GradientDescentOptimizer(-1.0).minimize(tf.reduce_sum(row))
  # The gradient does not depend on the row.
  used = tf.identity(row)
  tf.train.mark_target_node([used])
  return used, train


@pytest.mark.parametrize("smart_stage", [False, True], ids=["alone", "smart_stage"])
@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_a_lookup_runs_ahead_and_misses_at_most_the_updates_that_are_promised(use_resource, smart_stage):
  row, train = _counter(use_resource)
  config = async_embedding_config(smart_stage, capacity=2)
  with _session(config) as sess:
    for step in range(30):
      (value, _), lookups = _run_and_look(sess, [row, train])
      assert not lookups
      assert max(step - 3, 0) <= value.item() <= step


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_the_row_of_the_default_id_misses_at_most_the_updates_that_are_promised(use_resource):
  # Two of three steps have no ids, and share that row.
  numbers = _ids(*[[step] for step in range(30)])
  empty = tf.SparseTensor(tf.zeros([0, 2], tf.int64), tf.zeros([0], tf.int64), [1, 1])
  ids = tf.cond(
      tf.equal(numbers[0] % 3, 0), lambda: tf.SparseTensor([[0, 0]], numbers % 3 + 1, [1, 1]), lambda: empty)
  with tf.variable_scope("", use_resource=use_resource):
    table = tf.get_variable("table", [4, 1], initializer=tf.ones_initializer())
  row = tf.nn.safe_embedding_lookup_sparse([table], ids, default_id=2, combiner="sum")
  train = tf.train.AdagradOptimizer(0.5).minimize(tf.reduce_sum(row))
  used = tf.identity(row)
  tf.train.mark_target_node([used])
  with _session(async_embedding_config(capacity=2)) as sess:
    states = []
    for step in range(30):
      states.append(sess.run(table))
      (value, _), lookups = _run_and_look(sess, [used, train])
      assert not lookups
      assert value.item() in [state[1 if step % 3 == 0 else 2].item() for state in states[-4:]]


def _disjoint_rows():
  """A model in which no step looks up a row that one of the steps before it updates.

  So lookups that miss updates yield the same as lookups that do not.
  """
  numbers = np.random.RandomState(3)
  # Each of 40 steps has the rows of its remainder by 8.
  keys = [np.arange(6) * 8 + step % 8 for step in range(40)]
  words = [numbers.permutation(6) * 8 + step % 8 for step in range(40)]
  clicks = numbers.randint(0, 2, [40, 6]).astype(np.float32)
  dataset = tf.data.Dataset.from_tensor_slices(
      {"key": np.array(keys, np.int64), "words": np.array(words, np.int64), "clicks": clicks})
  return tf.data.make_one_shot_iterator(dataset).get_next()


def _model(features, use_resource, partitions):
  with tf.variable_scope("model", use_resource=use_resource):
    items = tf.get_variable(
        "items", [48, 4], initializer=tf.random_normal_initializer(seed=1),
        partitioner=tf.fixed_size_partitioner(partitions) if partitions else None)
    words = tf.get_variable("words", [48, 4], initializer=tf.random_normal_initializer(seed=2))
    weights = tf.get_variable("weights", [8, 1], initializer=tf.random_normal_initializer(seed=3))
  ids = tf.SparseTensor(
      tf.stack([tf.range(6, dtype=tf.int64), tf.zeros(6, tf.int64)], axis=1), features["words"] + 0, [6, 1])
  hidden = tf.concat([
      tf.nn.embedding_lookup(items, features["key"] + 0),
      tf.nn.safe_embedding_lookup_sparse([words] if use_resource else words, ids, combiner="mean"),
  ], axis=1)
  logits = tf.squeeze(tf.matmul(hidden, weights), axis=1)
  loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=features["clicks"], logits=logits))
  train = tf.train.AdagradOptimizer(0.5).minimize(loss, tf.train.get_or_create_global_step())
  return {"loss": loss, "hidden": hidden, "train": train}


def _losses(config, use_resource, partitions, manual):
  with tf.Graph().as_default():
    features = _disjoint_rows()
    if manual:
      features = tf.staged(features)
    fetches = _model(features, use_resource, partitions)
    losses = []
    with _session(config) as sess:
      values, lookups = _run_and_look(sess, fetches)
      losses.append(values["loss"])
      with pytest.raises(tf.errors.OutOfRangeError):
        while True:
          losses.append(sess.run(fetches)["loss"])
  return losses, lookups


@pytest.mark.parametrize("smart_stage", [False, True], ids=["alone", "smart_stage"])
@pytest.mark.parametrize("manual", [False, True], ids=["iterator", "staged"])
@pytest.mark.parametrize(
    "use_resource, partitions", [(False, 0), (True, 0), (True, 3)], ids=["reference", "resource", "partitioned"])
def test_losses_are_equal_where_no_lookup_misses_an_update(use_resource, partitions, manual, smart_stage):
  config = async_embedding_config(smart_stage, capacity=4)
  plain = tf.ConfigProto()
  for each in (config, plain):
    each.intra_op_parallelism_threads = each.inter_op_parallelism_threads = 1
    each.graph_options.rewrite_options.disable_meta_optimizer = True
  ahead, lookups = _losses(config, use_resource, partitions, manual)
  expected, plain_lookups = _losses(plain, use_resource, partitions, manual)
  assert len(ahead) == len(expected) == 40
  assert ahead == expected
  assert expected[-1] < 0.8 * expected[0]
  assert plain_lookups and not lookups


def test_every_name_gives_the_value_that_the_step_used():
  """Also lookups, although the step could look up newer values."""
  ids = _ids(*[[i % 3] for i in range(40)])
  table = tf.get_variable("table", [3, 1], initializer=tf.zeros_initializer(), use_resource=True)
  shifted = tf.identity(ids * 1, name="shifted")
  row = tf.nn.embedding_lookup(table, shifted)
  loss = tf.reduce_sum(row * 2.0 * tf.get_variable("weight", [], initializer=tf.ones_initializer(), trainable=False))
  train = tf.train.GradientDescentOptimizer(-0.5).minimize(loss, var_list=[table])
  lookup, = (op for op in tf.get_default_graph().get_operations() if op.type == "ResourceGather")
  names = [lookup.outputs[0], row, "mul:0", "shifted:0", "IteratorGetNext:0", ids]
  with _session(async_embedding_config(capacity=2)) as sess:
    for step in range(40):
      values = sess.run({"loss": loss, "train": train, "names": names})
      gathered, looked_up, multiplied, index, element, again = values["names"]
      assert values["loss"] == 2 * looked_up.item() == 2 * gathered.item()
      assert multiplied.tolist() == index.tolist() == element.tolist() == again.tolist() == [step % 3]


def test_fed_ids_are_looked_up_in_the_step():
  row, _ = _counter(use_resource=True)
  ids = tf.get_default_graph().get_tensor_by_name("mul:0")
  table = tf.trainable_variables()[0]
  with _session(async_embedding_config()) as sess:
    table.load([[7.0]], sess)
    assert sess.run(row, {ids: [0]}).tolist() == [[7.0]]
    assert sess.run(row, {"IteratorGetNext:0": [0]}).tolist() == [[7.0]]


def test_a_chosen_variable_alone_is_looked_up_ahead():
  ids = _ids(*[[0]] * 9) * 1
  one, two = (tf.get_variable(name, [1, 1], use_resource=True) for name in ("one", "two"))
  rows = [tf.nn.embedding_lookup(table, ids) for table in (one, two)]
  train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(rows[0] * rows[1]))
  tf.staging.allow_stale([two])
  with _session(async_embedding_config()) as sess:
    assert _run_and_look(sess, train)[1] == ["ResourceGather"]
  report = tf.staging.explain(config=async_embedding_config())
  stage, = (stage for stage in report.stages if stage.name == _STAGE)
  assert stage.variables == ("two",)


def test_a_save_and_an_initialisation_never_wait_for_records(tmp_path):
  """No stage runs here, so a run that needed a record would not end."""
  row, train = _counter(use_resource=True)
  saver = tf.train.Saver()
  table = tf.trainable_variables()[0]
  limit = tf.RunOptions(timeout_in_ms=60000)
  with tf.Session(config=async_embedding_config()) as sess:
    sess.run(tf.global_variables_initializer(), options=limit)
    path = saver.save(sess, str(tmp_path / "model"))
    table.load([[3.0]], sess)
    assert sess.run(tf.report_uninitialized_variables(), options=limit).size == 0
    saver.restore(sess, path)
    assert sess.run(table, options=limit).tolist() == [[0.0]]
    with tf.make_prefetch_hook().running(sess):
      sess.run([row, train], options=limit)
      # Producers wait for room, and the restore does not wait for them.
      saver.restore(sess, saver.save(sess, str(tmp_path / "running")))
      value, _ = sess.run([row, train], options=limit)
      assert value.item() <= 1


def test_a_variable_without_a_value_is_an_error_of_the_step():
  row, _ = _counter(use_resource=True)
  with tf.Session(config=async_embedding_config()) as sess, tf.make_prefetch_hook().running(sess):
    with pytest.raises(tf.errors.NotFoundError, match="table"):
      sess.run(row)


def test_initialising_the_iterator_again_restarts_both_stages():
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(3).batch(1))
  table = tf.get_variable("table", [3, 1], initializer=tf.zeros_initializer(), use_resource=True)
  ids = iterator.get_next() * 1
  row = tf.nn.embedding_lookup(table, ids)
  train = tf.train.GradientDescentOptimizer(-1.0).minimize(tf.reduce_sum(row))
  tf.train.mark_target_node([tf.identity(row)])
  with tf.Session(config=async_embedding_config(capacity=2)) as sess:
    sess.run([tf.global_variables_initializer(), iterator.initializer])
    with tf.make_prefetch_hook().running(sess):
      for epoch in range(3):
        for step in range(3):
          index, value, _ = sess.run([ids, row, train])
          assert index.tolist() == [step]
          # What the stages hold of the old data is discarded, so no lookup is from the epoch before.
          assert value.item() == epoch
        with pytest.raises(tf.errors.OutOfRangeError):
          sess.run(train)
        sess.run(iterator.initializer)


def test_the_report_tells_what_lookups_may_miss():
  _counter(use_resource=True)
  report = tf.staging.explain(config=async_embedding_config(capacity=3, threads_num=2))
  assert report.enabled and report.async_embedding
  assert [stage.name for stage in report.stages] == ["prefetch", _STAGE]
  stage = report.stages[1]
  assert stage.variables == ("table",)
  assert stage.stale_steps == 5
  assert "IteratorGetNext:0" in {tensor.name for tensor in stage.elements}
  assert any("embedding_lookup" in name for name in stage.nodes)
  text = str(report)
  assert "SmartStage is on, and lookups of embeddings run ahead of the step: " in text
  assert "May miss the updates of the last 5 steps in the variables:\n    'table'" in text


def test_the_report_without_smart_stage():
  _counter(use_resource=False)
  report = tf.staging.explain(config=async_embedding_config(smart_stage=False))
  assert not report.enabled
  stage, = report.stages
  assert stage.name == _STAGE and "IteratorGetNext" in stage.nodes
  assert str(report).startswith("SmartStage is off, and lookups of embeddings run ahead of the step: ")


@pytest.mark.parametrize("field", ["capacity", "threads_num"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_number_that_is_not_set_is_named_when_the_session_is_made(field, value):
  config = async_embedding_config(**{field: value})
  with pytest.raises(
      tf.errors.InvalidArgumentError, match=f"async_embedding_options.*{field} is {value}.*; .* at least 1"):
    tf.Session(config=config)


def test_a_missing_thread_pool_is_named():
  config = async_embedding_config()
  options = config.graph_options.optimizer_options.async_embedding_options
  options.use_stage_subgraph_thread_pool = True
  with pytest.raises(tf.errors.InvalidArgumentError, match="async_embedding_options sets use_stage_subgraph"):
    tf.Session(config=config)
  config.session_stage_subgraph_thread_pool.add()
  options.stage_subgraph_thread_pool_id = 2
  with pytest.raises(tf.errors.InvalidArgumentError, match="async_embedding_options sets .*_id 2; .* from 0 to 0"):
    tf.Session(config=config)


def test_lookups_run_on_the_chosen_thread_pool():
  row, train = _counter(use_resource=True)
  config = async_embedding_config()
  config.session_stage_subgraph_thread_pool.add(inter_op_threads_num=1, intra_op_threads_num=1)
  options = config.graph_options.optimizer_options.async_embedding_options
  options.use_stage_subgraph_thread_pool = True
  with _session(config) as sess:
    assert sess.run([row, train])[0].item() == 0
