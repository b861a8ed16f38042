# SPDX-License-Identifier: Apache-2.0
"""SmartStage does not change the values of a program in which several ops use one resource."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import smart_stage_runs
from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util

_STEPS = 12


def _in_order(dataset: tf.data.Dataset) -> tf.data.Dataset:
  """Returns the dataset without the optimizations of tf.data, which read ahead by themselves."""
  options = tf.data.Options()
  options.experimental_optimization.apply_default_optimizations = False
  options.autotune.enabled = False
  return dataset.with_options(options)


def _next_of(dataset: tf.data.Dataset) -> tf.Tensor:
  iterator = tf.data.make_initializable_iterator(_in_order(dataset))
  tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
  return iterator.get_next()


def _variable(name: str, value: float, resource: bool = True) -> tf.Variable:
  return tf.get_variable(name, initializer=np.float32(value), use_resource=resource)


def _compare(build, steps=_STEPS, staged=False) -> list:
  """Runs a program with and without SmartStage; returns the values of its steps, which are the same."""
  found, types = smart_stage_runs.records(build, True, steps)
  expected, _ = smart_stage_runs.records(build, False, steps)
  np.testing.assert_array_equal(found, expected, strict=True)
  assert ("TensorBufferTake" in types) == staged
  return found


def _plain(numbers, variable):
  return numbers.map(lambda x: x * variable)


def _batched_and_prefetched(numbers, variable):
  return _plain(numbers, variable).batch(1).prefetch(0).map(lambda x: x[0])


def _zipped(numbers, variable):
  return tf.data.Dataset.zip((numbers, _plain(numbers, variable))).map(lambda x, y: x + y)


def _interleaved(numbers, variable):
  return numbers.interleave(lambda x: _plain(tf.data.Dataset.from_tensors(x), variable), cycle_length=1)


def _flat(numbers, variable):
  scaled = _plain(numbers.take(2), variable)  # The function below captures this dataset.
  return numbers.flat_map(lambda x: scaled.map(lambda y: x + y))


def _called(numbers, variable):
  scale = tf.function(lambda x: x * variable.read_value())
  return numbers.map(lambda x: tf.cond(x < 3.0, lambda: scale(x), lambda: x + variable))


def _scanned(numbers, variable):
  return numbers.scan(np.float32(0), lambda state, x: (state + variable, x * state))


_DATASETS = [_plain, _batched_and_prefetched, _zipped, _interleaved, _flat, _called, _scanned]


def _numbers() -> tf.data.Dataset:
  return tf.data.Dataset.range(1, 100).map(lambda i: tf.cast(i, tf.float32))


def _loss(record):
  return tf.square(record - _variable("target", 3.0))


@pytest.mark.parametrize("dataset", _DATASETS)
def test_a_dataset_that_uses_a_trained_variable(dataset):
  def build():
    variable = _variable("scale", 0.5)
    record = _next_of(dataset(_numbers(), variable))
    loss = _loss(record)
    with tf.control_dependencies([loss]):
      train = tf.assign_add(variable, 0.125)
    return [loss, train]

  losses = [loss for loss, _ in _compare(build)]
  assert len(set(losses)) > 3


@pytest.mark.parametrize("dataset", [_plain, _zipped])
def test_a_dataset_that_keeps_the_memory_of_a_trained_variable(dataset):
  def build():
    variable = _variable("scale", 0.5, resource=False)
    record = _next_of(dataset(_numbers(), variable))
    loss = _loss(record)
    with tf.control_dependencies([loss]):
      train = tf.assign_add(variable, 0.125)
    return [loss, train]

  losses = [loss for loss, _ in _compare(build)]
  assert len(set(losses)) > 3


@pytest.mark.parametrize("resource", [True, False], ids=["resource", "reference"])
@pytest.mark.parametrize("dataset", [_plain, _zipped])
def test_a_dataset_that_uses_a_constant_variable_runs_ahead(dataset, resource):
  def build():
    loss = _loss(_next_of(dataset(_numbers(), _variable("scale", 0.5, resource))))
    return [loss, tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_or_create_global_step())]

  _compare(lambda: build()[:1], staged=True)


def test_a_restored_variable_is_constant(tmp_path):
  def build(initial):
    variable = _variable("scale", initial)
    loss = _loss(_next_of(_plain(_numbers(), variable)))
    return loss, tf.train.Saver()

  with tf.Graph().as_default():
    loss, saver = build(2.0)
    with tf.Session() as sess:
      sess.run(tf.global_variables_initializer())
      saver.save(sess, str(tmp_path / "model"))
  loss, saver = build(0.0)
  with tf.Session(config=smart_stage_runs.config(True)) as sess:
    saver.restore(sess, str(tmp_path / "model"))
    sess.run(tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS))
    with tf.make_prefetch_hook().running(sess):
      value, types = smart_stage_runs.run_and_look(sess, loss)
  assert value == (1 * 2.0 - 3.0)**2
  assert "TensorBufferTake" in types


def test_the_report_names_the_variable():
  variable = _variable("scale", 0.5)
  record = _next_of(_plain(_numbers(), variable)) + _variable("other", 1.0)
  tf.assign_add(variable, record)
  report = tf.staging.explain()
  assert not report.stages
  source, = report.unstaged_sources
  assert source.why == (
      "depends on an iterator whose dataset uses a resource that the graph may change, 'scale' (VarHandleOp)")
  assert source.why in str(report)


def test_an_iterator_that_initialises_itself_uses_no_variable():
  with pytest.raises(ValueError, match="captures a stateful object"):
    tf.data.make_one_shot_iterator(_plain(_numbers(), _variable("scale", 0.5)))


def test_a_generator_uses_no_variable():
  def build():
    numbers = tf.data.Dataset.from_generator(lambda: iter(range(_STEPS)), tf.float32, [])
    variable = _variable("scale", 0.5)
    loss = _loss(_next_of(numbers))
    return [loss, tf.assign_add(variable, loss)]

  _compare(build, staged=True)


def _table(shared_name: str) -> tf.Tensor:
  return tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.int64, shared_name=shared_name)


def _insert_after(value: tf.Tensor, table: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
  with tf.control_dependencies([value]):
    insert = tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=key, values=key * 10)
  with tf.control_dependencies([insert]):
    return tf.identity(value)


def _find(table: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
  return tf.raw_ops.LookupTableFindV2(table_handle=table, keys=key, default_value=tf.constant(-1, tf.int64))


def test_a_dataset_that_uses_a_table_which_the_step_fills():
  def build():
    table = _table("table")
    found = _next_of(tf.data.Dataset.range(_STEPS).map(lambda i: _find(table, i // 2)))
    step = tf.train.get_or_create_global_step()
    return _insert_after(found, table, tf.assign_add(step, 1) // 2)

  assert len(set(_compare(build))) > 3


def test_a_dataset_that_uses_a_fixed_table_runs_ahead():
  def build():
    initializer = tf.lookup.KeyValueTensorInitializer(tf.range(_STEPS), tf.range(_STEPS) * 10)
    table = tf.lookup.StaticHashTable(initializer, -1)
    found = _next_of(tf.data.Dataset.range(_STEPS, output_type=tf.int32).map(table.lookup))
    return tf.cast(found, tf.float32) * _variable("scale", 0.5)

  _compare(build, staged=True)


def test_a_table_that_is_filled_through_another_op():
  def build():
    key = _next_of(tf.data.Dataset.range(_STEPS).map(lambda i: i // 2))
    return _insert_after(_find(_table("table"), key), _table("table"), key)

  found = _compare(build, staged=True)
  assert found == [value for i in range(_STEPS // 2) for value in (-1, i * 10)]


def _two_iterators(names: tuple[str, str]):
  return [tf.data.make_initializable_iterator(tf.data.Dataset.range(60), shared_name=name) for name in names]


def _run_by_turns(sess, fetches) -> list[int]:
  return [int(sess.run(fetches[i % 2])) for i in range(60)]


def test_two_iterators_of_one_shared_name_lose_no_record():
  first, second = _two_iterators(("same", "same"))
  zero = tf.get_variable("zero", initializer=np.int64(0))
  fetches = [first.get_next() + zero, second.get_next() + zero]
  with smart_stage_sessions.smart_stage_session(first.initializer, capacity=3) as sess:
    assert _run_by_turns(sess, fetches) == list(range(60))


def test_two_iterators_of_one_shared_name_that_every_step_reads():
  first, second = _two_iterators(("same", "same"))
  zero = tf.get_variable("zero", initializer=np.int64(0))
  pair = tf.stack([first.get_next(), second.get_next()]) + zero
  with smart_stage_sessions.smart_stage_session(first.initializer, capacity=3) as sess:
    assert "TensorBufferTake" in smart_stage_sessions.staged_ops(sess, pair)
    found = test_util.drain(sess, pair)
  assert [sorted(record.tolist()) for record in found] == [[i, i + 1] for i in range(2, 60, 2)]


def test_two_iterators_of_two_names_run_ahead_separately():
  first, second = _two_iterators(("one", "other"))
  zero = tf.get_variable("zero", initializer=np.int64(0))
  fetches = [first.get_next() + zero, second.get_next() + zero]
  with smart_stage_sessions.smart_stage_session(first.initializer, second.initializer, capacity=3) as sess:
    assert _run_by_turns(sess, fetches) == [i // 2 for i in range(60)]
    assert all("TensorBufferTake" in smart_stage_sessions.staged_ops(sess, fetch) for fetch in fetches)


@pytest.mark.parametrize("manual", [False, True], ids=["smart_stage", "staged"])
def test_an_iterator_restarts_through_another_op(manual):
  first, second = _two_iterators(("same", "same"))
  record = first.get_next()
  if manual:
    record = tf.staged(record, capacity=3)
  result = record + tf.get_variable("zero", initializer=np.int64(0))
  with smart_stage_sessions.smart_stage_session(first.initializer, capacity=3) as sess:
    for _ in range(3):
      assert [sess.run(result) for _ in range(5)] == list(range(5))
      sess.run(second.initializer)


def test_two_buffers_of_one_name_in_two_containers():
  results = []
  initializers = []
  for container in ("a", "b"):
    data = tf.data.Dataset.range(60) if container == "a" else tf.data.Dataset.range(1000, 1060)
    iterator = tf.data.make_initializable_iterator(data)
    initializers.append(iterator.initializer)
    taken = tf.staged(iterator.get_next(), capacity=3, name=f"stage_{container}")
    results.append(-taken + tf.get_variable(f"zero_{container}", initializer=np.int64(0)))
  # As in a graph that consists of two others.
  for op in tf.get_default_graph().get_operations():
    if op.type.startswith("TensorBuffer"):
      op._set_attr("container", tf.AttrValue(s=op.name.split("/")[0][-1].encode()))
      op._set_attr("shared_name", tf.AttrValue(s=b"stage"))
  with smart_stage_sessions.smart_stage_session(*initializers) as sess:
    for _ in range(3):
      assert [sess.run(results) for _ in range(5)] == [[-i, -1000 - i] for i in range(5)]
      sess.run(initializers)
    ops = smart_stage_sessions.staged_ops(sess, results)
    assert "IteratorGetNext" not in ops and "Neg" not in ops
