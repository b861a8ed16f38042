# SPDX-License-Identifier: Apache-2.0
"""`feed_list` and `feed_generator`: Python code feeds a stage, record by record."""

import itertools
import threading

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util


def _staged_number(feed_generator, **options):
  """Stages the number that `feed_generator` yields, times ten."""
  number = tf.placeholder(tf.int64, [])
  return tf.staged(number * 10, feed_list=[number], feed_generator=feed_generator, **options)


def _three():
  """Yields three records."""
  for number in range(3):
    yield [number]


@pytest.mark.parametrize(
    "feed_generator",
    [_three, lambda sess: _three(), _three(), [[0], [1], [2]], [(np.int64(n),) for n in range(3)]],
    ids=["function", "function of the session", "generator", "list", "tuples"])
def test_every_form_of_a_generator(feed_generator):
  record = _staged_number(feed_generator)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, record) == [0, 10, 20]


def test_values_follow_the_order_of_feed_list():
  ids = tf.placeholder(tf.int64, [None])
  text = tf.placeholder(tf.string, [])
  sparse = tf.sparse.placeholder(tf.float32, [2, 2])
  record = tf.staged(
      {"ids": ids, "text": text, "dense": tf.sparse.to_dense(sparse)},
      feed_list=(text, sparse, ids),
      feed_generator=lambda: [["a", tf.SparseTensorValue([[0, 1]], [5.0], [2, 2]), [1, 2, 3]]])
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    value = sess.run(record)
  assert value["text"] == b"a"
  np.testing.assert_array_equal(value["ids"], [1, 2, 3])
  np.testing.assert_array_equal(value["dense"], [[0, 5], [0, 0]])


def test_a_function_receives_the_session():
  sessions = []

  def numbers(sess):
    sessions.append(sess)
    yield [sess.run(three)]

  three = tf.constant(3, tf.int64)
  record = _staged_number(numbers)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, record) == [30]
    assert sessions == [sess]


def test_a_function_is_called_each_time_the_stage_starts():
  record = _staged_number(_three)
  hook = tf.make_prefetch_hook()
  for _ in range(2):
    with tf.Session() as sess:
      for _ in range(2):
        with hook.running(sess):
          assert test_util.drain(sess, record) == [0, 10, 20]


def test_a_generator_continues_in_the_next_session():
  record = _staged_number(_three())
  hook = tf.make_prefetch_hook()
  with tf.Session() as sess, hook.running(sess):
    assert test_util.drain(sess, record) == [0, 10, 20]
  with tf.Session() as sess, hook.running(sess):
    assert test_util.drain(sess, record) == []


def test_training_and_evaluation_share_a_graph_and_a_hook():
  record = _staged_number(_three, capacity=2)
  hook = tf.make_prefetch_hook()
  with tf.train.MonitoredTrainingSession(hooks=[hook]) as sess:
    assert sess.run(record) == 0
  with tf.train.MonitoredSession(hooks=[hook]) as sess:
    assert test_util.drain(sess, record) == [0, 10, 20]


def test_two_concurrent_sessions_have_separate_data():
  record = _staged_number(_three)
  hook = tf.make_prefetch_hook()
  with tf.Session() as first, tf.Session() as second, hook.running(first), hook.running(second):
    assert first.run(record) == 0
    assert test_util.drain(second, record) == [0, 10, 20]
    assert test_util.drain(first, record) == [10, 20]


def test_two_concurrent_sessions_share_a_generator():
  record = _staged_number([number] for number in range(200))
  hook = tf.make_prefetch_hook()
  with tf.Session() as first, tf.Session() as second, hook.running(first), hook.running(second):
    taken = []
    threads = [
        threading.Thread(target=lambda sess=sess: taken.extend(test_util.drain(sess, record)))
        for sess in (first, second)
    ]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
  assert sorted(taken) == list(range(0, 2000, 10))


def test_threads_enter_the_generator_one_at_a_time():
  inside = threading.Lock()
  acquired = []

  def numbers():
    for number in range(200):
      acquired.append(inside.acquire(blocking=False))
      inside.release()
      yield [number]

  record = _staged_number(numbers, num_threads=8)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert sorted(test_util.drain(sess, record)) == list(range(0, 2000, 10))
  assert acquired == [True] * 200


def test_the_generator_yields_no_record_before_the_stage_needs_it():
  asked = itertools.count()
  full = threading.Event()

  def numbers():
    for number in asked:
      if number == 3:
        full.set()
      yield [number]

  record = _staged_number(numbers, capacity=3)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    # Three records are in the buffer and one waits for room.
    assert full.wait(test_util.WAIT_SECONDS)
    assert sess.run(record) == 0
  assert next(asked) in (4, 5)


def test_feed_dict_and_feed_list_work_together():
  left, right = tf.placeholder(tf.int64, []), tf.placeholder(tf.int64, [])
  record = tf.staged(
      (left, right), feed_dict={left: test_util.dataset_record(5)},
      feed_list=[right], feed_generator=_three)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, record) == [(0, 0), (1, 1), (2, 2)]


def test_a_monitored_session_ends_with_the_generator():
  record = _staged_number(_three)
  seen = []
  with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
    while not sess.should_stop():
      seen.append(sess.run(record))
  assert seen == [0, 10, 20]


def test_the_api_root_of_tensorflow_2(run_forked, tmp_path):
  output = run_forked(
      """
      import tensorflow as tf

      with tf.Graph().as_default():
        number = tf.compat.v1.placeholder(tf.int64, [])
        record = tf.staged(number + 1, feed_list=[number], feed_generator=lambda: [[1], [2]])
        with tf.compat.v1.Session() as sess, tf.make_prefetch_hook().running(sess):
          print(sess.run(record), sess.run(record))
      """, tmp_path, api_version="2")
  assert output == "2 3\n"


def test_closing_the_session_waits_for_a_generator_that_is_running():
  begun, go_on = threading.Event(), threading.Event()

  def slow():
    begun.set()
    go_on.wait()
    yield [1]

  _staged_number(slow)
  sess = tf.Session()
  tf.make_prefetch_hook().after_create_session(sess)
  assert begun.wait(test_util.WAIT_SECONDS)
  closing = threading.Thread(target=sess.close)
  closing.start()
  go_on.set()
  closing.join()
  test_util.assert_no_stage_thread()
