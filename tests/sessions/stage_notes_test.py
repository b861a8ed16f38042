# SPDX-License-Identifier: Apache-2.0
"""What the hook says of a stage when it starts: state that may change, and iterators that it cannot see."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.session import needed_runners
from tensorflow_staging.python.testing import loopback


@pytest.fixture
def warnings(monkeypatch):
  """The warnings that the hook has logged."""
  logged = []
  monkeypatch.setattr(
      needed_runners.tf_logging, "warning",
      lambda text, *args: logged.append(text % args) if text == "%s" else None)
  return logged


def _next(end=100):
  return tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(end)).get_next()


def _start(sess):
  """Starts the stages twice."""
  for _ in range(2):
    with tf.make_prefetch_hook().running(sess):
      pass


def test_a_stage_of_data_alone_says_nothing(warnings):
  table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([0, 1], [5, 6]), -1)
  scale = tf.compat.v1.get_variable("scale", [], tf.int64, initializer=tf.zeros_initializer())
  tf.staged(table.lookup(tf.cast(_next(), tf.int32)) + tf.cast(scale, tf.int32))
  with tf.Session() as sess:
    sess.run([tf.tables_initializer(), tf.global_variables_initializer()])
    _start(sess)
  assert warnings == []


def test_a_variable_that_the_program_assigns_is_named_once_with_the_remedy(warnings):
  mode = tf.compat.v1.get_variable("mode", [], tf.int64, initializer=tf.zeros_initializer(), use_resource=True)
  mode.assign(1, name="switch")
  tf.staged(_next() + mode, name="ahead")
  with tf.Session() as sess:
    sess.run(mode.initializer)
    _start(sess)
  assert len(warnings) == 1
  assert warnings[0].startswith(
      "Stage 'ahead' reads 'mode' (VarHandleOp), which 'switch' (AssignVariableOp) may change")
  assert "tf.staging.discard(session)" in warnings[0]


def test_eager_python_may_read_anything(warnings):
  tf.staged(tf.py_function(lambda n: n + 1, [_next()], tf.int64, name="eager"))
  with tf.Session() as sess:
    _start(sess)
  assert len(warnings) == 1
  assert "'prefetch' runs eager Python code" in warnings[0]
  assert "eager" in warnings[0]


def test_a_stage_that_comes_too_late_to_carry_the_label_is_named(warnings):
  features, label = tf.data.make_one_shot_iterator(tf.data.Dataset.range(9).map(lambda n: (n, n))).get_next()
  first = tf.staged(features, name="first")
  with tf.Session() as sess:
    _start(sess)
    with tf.make_prefetch_hook().running(sess):
      sess.run([first])
    assert warnings == []
    tf.staged(label, name="second")
    _start(sess)
  assert len(warnings) == 1
  assert warnings[0].startswith("Stage 'second' was added after the stages of the session had begun to run")
  report = tf.staging.explain()
  assert report.notes == tuple(warnings)
  assert warnings[0] in str(report)
  assert "Stage &#x27;second&#x27; was added after" in report.to_html()


def test_numpy_functions_say_nothing(warnings):
  tf.staged(tf.numpy_function(lambda n: n + 1, [_next()], tf.int64))
  with tf.Session() as sess:
    _start(sess)
  assert warnings == []


@pytest.mark.parametrize("stateful", (True, False))
def test_smart_stage_says_that_it_calls_a_stateful_python_function_ahead(warnings, stateful):
  called = tf.numpy_function(lambda n: n + 1, [_next()], tf.int64, stateful=stateful, name="called")
  called.set_shape([])
  total = tf.compat.v1.get_variable("total", [], tf.int64, initializer=tf.zeros_initializer())
  train = tf.compat.v1.assign_add(total, called)
  config = tf.ConfigProto()
  config.graph_options.optimizer_options.do_smart_stage = True
  with tf.Session(config=config) as sess:
    sess.run(total.initializer)
    _start(sess)
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(train) == 1
  assert len(warnings) == int(stateful)
  if stateful:
    assert "'prefetch' calls the Python function of 'called' (PyFunc)" in warnings[0], warnings
    assert "tf.train.mark_target_node" in warnings[0]


@pytest.fixture
def target():
  """The target of the first of two tasks of a cluster."""
  cluster = tf.train.ClusterSpec(
      {"worker": [f"localhost:{port}" for port in loopback.free_ports(2)]})
  servers = [tf.train.Server(cluster, job_name="worker", task_index=i) for i in range(2)]
  return servers[0].target


def _stage_of_another_task():
  """Returns an iterator of the second task, which a stage of the first one reads."""
  with tf.device("/job:worker/task:1"):
    iterator = tf.compat.v1.data.make_initializable_iterator(tf.data.Dataset.range(100))
    number = iterator.get_next()
  with tf.device("/job:worker/task:0"):
    record = tf.staged(number + 1)
  return iterator, record


def test_an_iterator_of_another_process_is_named(warnings, target):
  iterator, record = _stage_of_another_task()
  with tf.Session(target) as sess:
    sess.run(iterator.initializer)
    with tf.make_prefetch_hook().running(sess):
      assert [sess.run(record) for _ in range(3)] == [1, 2, 3]
  assert len(warnings) == 1
  name = iterator._iterator_resource.op.name
  assert f"'prefetch' reads iterator '{name}' (IteratorV2) of another process" in warnings[0]
  assert "/task:1" in warnings[0]


def test_a_checkpoint_that_would_lose_its_records_is_refused(target):
  iterator, _ = _stage_of_another_task()
  tf.staging.save_iterators(iterator)
  with tf.Session(target) as sess:
    sess.run(iterator.initializer)
    with pytest.raises(tf.errors.FailedPreconditionError, match="would lose the records of iterator"):
      _start(sess)
