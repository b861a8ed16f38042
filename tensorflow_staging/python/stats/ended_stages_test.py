# SPDX-License-Identifier: Apache-2.0
"""A stage that ends says what it has done and gained, in a training of any length."""

import time

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.platform import tf_logging

from tensorflow_staging.python.testing import test_util


@pytest.fixture
def lines(monkeypatch):
  logged = []

  def info(text, *args):
    if (line := text % args).startswith("Stage "):
      logged.append(line)

  monkeypatch.setattr(tf_logging, "info", info)
  return logged


def _slow(number):
  time.sleep(0.005)
  return number


def _step():
  """A step of 5 ms, and a stage that takes as long to make a record."""
  record = tf.staged(tf.numpy_function(_slow, [test_util.dataset_record(1000)], tf.int64), capacity=2)
  return tf.numpy_function(_slow, [record], tf.int64)


def _hid(line):
  """The time that the line says was hidden, and that of a step without the stage."""
  words = line.split(" hid ")[1].split(" ms a step")[0].split()
  return float(words[-3]), float(words[-1])


def test_a_short_training_in_a_monitored_session(lines):
  step = _step()
  with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
    for _ in range(40):
      sess.run(step)
  line, = lines
  assert line.startswith("Stage 'prefetch' has ended after 40 records: it hid ")
  assert "; steps waited for records " in line
  hidden, unstaged = _hid(line)
  assert 10 < unstaged
  assert 0 < hidden < unstaged
  # What to do next depends on what else runs on the machine.
  assert line.split("% of the time. ")[1][0] in "ST"


def test_a_plain_session(lines):
  step = _step()
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    for _ in range(3):
      sess.run(step)
  assert lines == [
      "Stage 'prefetch' has ended after 3 records: it ran for 2 steps, too few to say what it gained; it takes 10."]


def test_an_estimator(lines, tmp_path):

  def model_fn(features, labels, mode):
    del labels
    step = tf.numpy_function(_slow, [tf.staged(tf.numpy_function(_slow, [features], tf.int64))], tf.int64)
    with tf.control_dependencies([step]):
      train_op = tf.train.get_global_step().assign_add(1)
    return tf.estimator.EstimatorSpec(
        mode, loss=tf.constant(0.0), train_op=train_op, training_hooks=[tf.make_prefetch_hook()])

  estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
  estimator.train(lambda: tf.data.Dataset.range(1000), steps=30)
  line, = lines
  assert line.startswith("Stage 'prefetch' has ended after 30 records: it hid ")


def test_the_end_of_the_data(lines):
  record = tf.staged(test_util.dataset_record(30))
  with tf.train.MonitoredSession(hooks=[tf.make_prefetch_hook()]) as sess:
    while not sess.should_stop():
      sess.run(record)
  line, = lines
  assert line.startswith("Stage 'prefetch' has ended after 30 records")


def test_a_stage_without_a_step_says_nothing(lines):
  tf.staged(test_util.dataset_record(30))
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    pass
  assert lines == []


def test_an_end_without_stages_says_nothing(lines):
  with tf.Session() as sess:
    tf.make_prefetch_hook().end(sess)
    with tf.make_prefetch_hook().running(sess):
      pass
  assert lines == []


def test_the_waits_of_an_earlier_run_of_the_stage_do_not_count(lines):
  source = test_util.Source()
  record = tf.staged(source.tensor())
  hook = tf.make_prefetch_hook()
  with tf.Session() as sess:
    with hook.running(sess):
      for _ in range(15):
        sess.run(record)
        time.sleep(0.01)  # The stage waits for room.
    with hook.running(sess):
      for _ in range(15):
        sess.run(record)
  assert [line.split(":")[0] for line in lines] == [
      "Stage 'prefetch' has ended after 15 records", "Stage 'prefetch' has ended after 30 records"]


def test_nested_blocks_say_it_once(lines):
  record = tf.staged(test_util.dataset_record(30))
  hook = tf.make_prefetch_hook()
  with tf.Session() as sess, hook.running(sess):
    with hook.running(sess):
      sess.run(record)
    assert lines == []
  assert len(lines) == 1


def test_records_that_were_lost_are_a_warning(monkeypatch):
  warnings = []
  monkeypatch.setattr(tf_logging, "warning", lambda text, *args: warnings.append(text % args))
  rows = tf.data.Dataset.from_tensor_slices(["1", "two", "3"])
  number = tf.strings.to_number(tf.data.make_one_shot_iterator(rows).get_next())
  record = tf.staged(number, ignored_exception_types=(tf.errors.InvalidArgumentError,))
  with tf.train.MonitoredSession(hooks=[tf.make_prefetch_hook()]) as sess:
    assert test_util.drain(sess, record) == [1, 3]
  assert warnings == [
      "Stage 'prefetch' has ended. It left out 1 record whose errors ignored_exception_types names."]
