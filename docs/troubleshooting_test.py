# SPDX-License-Identifier: Apache-2.0
"""troubleshooting.md is true: each error that it quotes appears, and its remedy helps."""

import contextlib
import logging
import re
import subprocess
import sys
import time
from collections.abc import Iterator

import page_examples
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util

_TEXT = " ".join((page_examples.DOCS / "troubleshooting.md").read_text().split())
_SYMPTOMS = " ".join(re.findall(r"\* \*\*(.*?)\*\*<br>", _TEXT))


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
  with tf.Graph().as_default():
    yield
  test_util.assert_no_stage_thread()


def _numbers(count: int = 10, batch: int = 2) -> tf.Tensor:
  return tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(count).batch(batch)).get_next()


@contextlib.contextmanager
def _session(config: tf.compat.v1.ConfigProto | None = None) -> Iterator[tf.compat.v1.Session]:
  with tf.compat.v1.Session(config=config) as sess, tf.make_prefetch_hook().running(sess):
    yield sess


def _smart_stage(**options) -> tf.compat.v1.ConfigProto:
  config = tf.compat.v1.ConfigProto()
  config.graph_options.optimizer_options.do_smart_stage = True
  config.graph_options.optimizer_options.smart_stage_options.CopyFrom(tf.SmartStageOptions(**options))
  return config


def _train(features: tf.Tensor) -> tf.Operation:
  weight = tf.compat.v1.get_variable("weight", [2])
  return tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(features * weight))


def _raises(error: type[Exception], quoted: str):
  """Expects an error that the page quotes."""
  assert f'"{quoted}"' in _SYMPTOMS
  return pytest.raises(error, match=re.escape(quoted))


def test_a_wheel_for_another_python(tmp_path):
  wheel = tmp_path / "tensorflow-2.14.1+staging.1-cp27-cp27m-manylinux_2_34_x86_64.whl"
  wheel.touch()
  done = subprocess.run(
      [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--target", tmp_path / "target", wheel],
      capture_output=True, text=True, timeout=100, check=False)
  quoted = "is not a supported wheel on this platform"
  assert quoted in done.stderr
  assert f'"{quoted}"' in _SYMPTOMS


@pytest.mark.parametrize("call,error", [
    (lambda: tf.keras.layers.StringLookup(), AttributeError),
    (lambda: tf.random.set_seed(1), AttributeError),
    (lambda: tf.constant(1).numpy(), AttributeError),
    (lambda: iter(tf.data.Dataset.range(2)), RuntimeError),
    (lambda: tf.staging.SmartStage(), RuntimeError),
])
def test_a_program_of_version_2_with_the_api_of_version_1(call, error):
  with _raises(error, "This program runs with TensorFlow 1's API"):
    call()


def test_a_filter_silences_deprecations_alone():
  added, = re.findall(r"`(tf\.get_logger\(\)\.addFilter\(.*?\)\))`", _TEXT)
  kept: list[str] = []
  logger = tf.get_logger()
  handler = logging.Handler()
  handler.emit = lambda record: kept.append(record.getMessage())
  logger.addHandler(handler)
  filters = list(logger.filters)
  try:
    exec(added)
    logger.warning("The name tf.x is deprecated.")
    logger.warning("Stage 'prefetch' dropped a record.")
  finally:
    logger.removeHandler(handler)
    logger.filters[:] = filters
  assert kept == ["Stage 'prefetch' dropped a record."]


def test_no_hook():
  record = tf.staged(_numbers())
  with tf.compat.v1.Session() as sess, _raises(tf.errors.FailedPreconditionError, "Stage 'prefetch' is not running"):
    sess.run(record)


def test_an_iterator_without_its_initialiser():
  iterator = tf.compat.v1.data.make_initializable_iterator(tf.data.Dataset.range(3))
  record = tf.staged(iterator.get_next())
  with _session() as sess:
    with _raises(tf.errors.FailedPreconditionError, "the iterator has not been initialized"):
      sess.run(record)
    sess.run(iterator.initializer)
    assert sess.run(record) == 0


def test_the_end_of_the_data():
  iterator = tf.compat.v1.data.make_initializable_iterator(tf.data.Dataset.range(1))
  record = tf.staged(iterator.get_next())
  with _session() as sess:
    sess.run(iterator.initializer)
    sess.run(record)
    with _raises(tf.errors.OutOfRangeError, "has reached the end of its data"):
      sess.run(record)
    sess.run(iterator.initializer)
    assert sess.run(record) == 0


def test_a_bad_record():
  words = tf.data.Dataset.from_tensor_slices(["1", "x", "2"])
  number = tf.strings.to_number(tf.compat.v1.data.make_one_shot_iterator(words).get_next())
  record = tf.staged(number)
  with _session() as sess, _raises(tf.errors.InvalidArgumentError, "could not correctly convert string"):
    sess.run(record)
    sess.run(record)


def test_a_bad_record_can_be_skipped():
  words = tf.data.Dataset.from_tensor_slices(["1", "x", "2"])
  number = tf.strings.to_number(tf.compat.v1.data.make_one_shot_iterator(words).get_next())
  record = tf.staged(number, ignored_exception_types=(tf.errors.INVALID_ARGUMENT,))
  with _session() as sess:
    assert [sess.run(record) for _ in range(2)] == [1, 2]


def test_a_fetch_that_no_record_carries():
  draw = tf.random.uniform(tf.shape(_numbers()), seed=1)
  train_op = _train(draw * 2)
  with tf.compat.v1.train.MonitoredTrainingSession(config=_smart_stage(), hooks=[tf.make_prefetch_hook()]) as sess:
    with _raises(tf.errors.FailedPreconditionError, "The records do not carry it"):
      sess.run([train_op, draw])


def test_a_marked_tensor_can_be_fetched():
  draw = tf.random.uniform(tf.shape(_numbers()), seed=1)
  tf.train.mark_target_node([tf.identity(draw)])
  train_op = _train(draw * 2)
  with tf.compat.v1.train.MonitoredTrainingSession(config=_smart_stage(), hooks=[tf.make_prefetch_hook()]) as sess:
    assert len(sess.run([train_op, draw])[1]) == 2


def test_a_pool_that_is_missing():
  record = tf.staged(_numbers(), use_stage_subgraph_thread_pool=True, stage_subgraph_thread_pool_id=3)
  with _session() as sess, _raises(
      tf.errors.InvalidArgumentError, "The run asks for stage thread pool 3, but the session has 0 of them"):
    sess.run(record)


def test_options_of_another_graph():
  with tf.Graph().as_default() as other:
    config = _smart_stage(graph=other)
  _numbers()
  with _raises(ValueError, "was given another graph"):
    tf.compat.v1.Session(config=config)


def test_a_checkpoint_from_before_the_call(tmp_path):
  iterator = tf.compat.v1.data.make_initializable_iterator(tf.data.Dataset.range(3))
  tf.staged(iterator.get_next())
  tf.compat.v1.get_variable("v", [])
  with tf.compat.v1.Session() as sess:
    sess.run([tf.compat.v1.global_variables_initializer(), iterator.initializer])
    path = tf.compat.v1.train.Saver().save(sess, str(tmp_path / "model"))
    tf.staging.save_iterators(iterator)
    with _raises(tf.errors.NotFoundError, "Key IteratorV2_STATE not found in checkpoint"):
      tf.compat.v1.train.Saver().restore(sess, path)
    tf.compat.v1.train.Saver(tf.compat.v1.global_variables()).restore(sess, path)


def test_data_that_is_fed_is_not_staged():
  fed = tf.compat.v1.placeholder(tf.float32, [2])
  train_op = _train(fed)
  config = _smart_stage()
  assert "nothing can run ahead" in str(tf.staging.explain(config=config))
  with tf.compat.v1.train.MonitoredTrainingSession(config=config, hooks=[tf.make_prefetch_hook()]) as sess:
    sess.run(train_op, {fed: [1, 2]})
    assert len(tf.staging.stats(sess)) == 0


@pytest.mark.parametrize("timeout_millis,dropped", [(50, True), (0, False)])
def test_a_pause_drops_records_unless_there_is_no_limit(timeout_millis, dropped):
  record = tf.staged(_numbers(100), timeout_millis=timeout_millis)
  with _session() as sess:
    sess.run(record)
    if dropped:
      while not tf.staging.stats(sess)[0].dropped:
        time.sleep(0.01)
    else:
      while not tf.staging.stats(sess)[0].waiting_puts:
        time.sleep(0.01)
    assert (tf.staging.stats(sess)[0].dropped > 0) == dropped


def test_a_changed_variable_shows_after_discard():
  offset = tf.compat.v1.get_variable("offset", [], tf.int64, initializer=tf.compat.v1.zeros_initializer())
  record = tf.staged(_numbers(100, 1)[0] * 0 + offset, capacity=4)
  with tf.compat.v1.Session() as sess:
    sess.run(offset.initializer)
    with tf.make_prefetch_hook().running(sess):
      sess.run(record)
      sess.run(offset.assign(7))
      tf.staging.discard(sess)
      assert sess.run(record) == 7
