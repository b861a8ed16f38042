# SPDX-License-Identifier: Apache-2.0
"""Stages run in every kind of session that a script may use, up to the end of the data."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util


@pytest.mark.parametrize(
    "make_session",
    [tf.train.MonitoredTrainingSession, tf.train.MonitoredSession, tf.train.SingularMonitoredSession],
    ids=lambda make_session: make_session.__name__)
def test_a_monitored_session(make_session):
  record = tf.staged(test_util.dataset_record(10), capacity=2, num_threads=2)
  seen = []
  with make_session(hooks=[tf.make_prefetch_hook()]) as sess:
    while not sess.should_stop():
      seen.append(sess.run(record))
  assert sorted(seen) == list(range(10))


def test_an_interactive_session():
  record = tf.staged(test_util.dataset_record(2))
  sess = tf.InteractiveSession()
  try:
    with tf.make_prefetch_hook().running(sess):
      assert [record.eval(), record.eval()] == [0, 1]
  finally:
    sess.close()


def test_an_interactive_session_sees_the_label_beside_the_stage():
  number = test_util.dataset_record(4)
  record = tf.staged(number * 2)
  sess = tf.InteractiveSession()
  try:
    with tf.make_prefetch_hook().running(sess):
      assert sess.run([record, number]) == [0, 0]
      assert sess.run([record, number]) == [2, 1]
  finally:
    sess.close()


def test_a_stage_needs_the_whole_graph_so_it_turns_place_pruned_graph_off():
  number = test_util.dataset_record(2)
  record = tf.staged(number * 2)
  config = tf.ConfigProto()
  config.graph_options.place_pruned_graph = True
  with tf.Session(config=config) as sess:
    with tf.make_prefetch_hook().running(sess):
      assert sess.run([record, number]) == [0, 0]
      assert sess.run([record, number]) == [2, 1]


def test_an_interactive_session_that_gets_its_stage_after_its_first_runs():
  sess = tf.InteractiveSession()
  try:
    total = tf.get_variable("total", initializer=5)
    sess.run(total.initializer)
    number = test_util.dataset_record(4)
    record = tf.staged(number * 2)
    with tf.make_prefetch_hook().running(sess):
      assert sess.run([record, number, total]) == [0, 0, 5]
      assert sess.run([record, number, total]) == [2, 1, 5]
  finally:
    sess.close()


def test_an_interactive_session_with_smart_stage():
  record = test_util.dataset_record(2) * 10
  tf.train.mark_target_node([tf.identity(record, name="target")])
  config = smart_stage_sessions.smart_stage_config()
  sess = tf.InteractiveSession(config=config)
  try:
    with tf.make_prefetch_hook().running(sess):
      assert "TensorBufferTake" in smart_stage_sessions.staged_ops(sess, "target:0")
      assert sess.run("target:0") == 10
  finally:
    sess.close()


def test_an_interactive_session_with_lookups_ahead_of_the_step():
  table = tf.get_variable("table", [2, 1], initializer=tf.ones_initializer())
  row = tf.nn.embedding_lookup(table, [test_util.dataset_record(2)])
  config = tf.ConfigProto()
  options = config.graph_options.optimizer_options
  options.do_async_embedding = True
  options.async_embedding_options.capacity = options.async_embedding_options.threads_num = 1
  sess = tf.InteractiveSession(config=config)
  try:
    sess.run(table.initializer)
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(row).tolist() == [[1.0]]
  finally:
    sess.close()


def test_a_plain_session_with_a_coordinator():
  record = tf.staged(test_util.dataset_record(10))
  with tf.Session() as sess:
    coord = tf.train.Coordinator()
    tf.make_prefetch_hook().after_create_session(sess, coord)
    assert test_util.drain(sess, record) == list(range(10))
    coord.request_stop()
    coord.join()


def test_a_callable_made_from_the_session():
  record = tf.staged(test_util.dataset_record(2))
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    step = sess.make_callable(record)
    assert [step(), step()] == [0, 1]
