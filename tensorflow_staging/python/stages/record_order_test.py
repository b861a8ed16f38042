# SPDX-License-Identifier: Apache-2.0
"""Every record is taken exactly once, and in order if there is one producer."""

import threading

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util

_COUNT = 500


@pytest.mark.parametrize("capacity", [1, 2, 64])
def test_one_thread_keeps_the_order(capacity):
  record = tf.staged(test_util.dataset_record(_COUNT), capacity=capacity)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, record) == list(range(_COUNT))


@pytest.mark.parametrize("capacity", [1, 64])
def test_every_record_of_several_threads_is_taken_once(capacity):
  record = tf.staged(
      test_util.dataset_record(_COUNT), capacity=capacity, num_threads=4, num_clients=3)
  taken = []
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    consumers = [
        threading.Thread(target=lambda: taken.extend(test_util.drain(sess, record)))
        for _ in range(3)
    ]
    for consumer in consumers:
      consumer.start()
    for consumer in consumers:
      consumer.join()
  assert sorted(taken) == list(range(_COUNT))


def test_one_inter_op_thread_is_enough():
  config = tf.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
  record = tf.staged(test_util.dataset_record(_COUNT), num_threads=2)
  with tf.Session(config=config) as sess, tf.make_prefetch_hook().running(sess):
    assert sorted(test_util.drain(sess, record)) == list(range(_COUNT))


def test_components_of_a_record_stay_together():
  record = test_util.dataset_record(_COUNT)
  pair = tf.staged((record, record * 2), capacity=8, num_threads=4)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    pairs = test_util.drain(sess, pair)
  assert sorted(pairs) == [(n, 2 * n) for n in range(_COUNT)]


def test_a_stage_may_feed_another():
  first = tf.staged(test_util.dataset_record(_COUNT), capacity=2)
  second = tf.staged(first + 1, capacity=2)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, second) == list(range(1, _COUNT + 1))


def test_two_stages_of_one_graph_are_independent():
  low = tf.staged(test_util.dataset_record(5))
  high = tf.staged(test_util.dataset_record(9) + 100)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, low) == list(range(5))
    assert test_util.drain(sess, high) == list(range(100, 109))


def test_the_stage_runs_ahead_of_the_step():
  source = test_util.Source()
  record = tf.staged(source.tensor(), capacity=3)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    # Before the first step, three records are in the buffer and the fourth waits for room.
    source.wait_until_asked(4)
    assert sess.run(record) == 0


def test_dependencies_around_the_call_belong_to_the_step():
  steps = tf.get_variable("steps", [], tf.int64, tf.zeros_initializer(), use_resource=True)
  record = test_util.dataset_record(3)
  with tf.control_dependencies([steps.assign_add(1)]):
    record = tf.staged(record, capacity=3)
  with tf.Session() as sess:
    sess.run(steps.initializer)
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(record) == 0
      assert sess.run(steps) == 1
