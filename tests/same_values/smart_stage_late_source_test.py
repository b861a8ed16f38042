# SPDX-License-Identifier: Apache-2.0
"""A `get_next()` that is added while a stage reads its iterator takes the records of the stage."""

import collections
import contextlib

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import control_flow
from tensorflow_staging.python.testing import smart_stage_sessions


def _pairs(stop):
  return tf.data.Dataset.range(stop).map(lambda x: (x, tf.as_string(x)))


def _train(number):
  """Returns what a step yields that trains with a record."""
  return number * 2 + tf.get_variable("variable", initializer=np.int64(1000))


@pytest.mark.parametrize("capacity", [1, 5])
def test_records_arrive_in_order_whoever_asks_for_them(capacity):
  iterator = tf.data.make_one_shot_iterator(_pairs(12))
  result = _train(iterator.get_next()[0])
  with smart_stage_sessions.smart_stage_session(capacity=capacity) as sess:
    assert sess.run(result) == 1000
    for number in range(1, 11, 2):
      assert sess.run(iterator.get_next()) == (number, str(number).encode())
      assert sess.run(result) == 1002 + 2 * number
    later = iterator.get_next()
    assert sess.run(later[0] + 1) == 12
    for fetch in (later, result, iterator.get_next()):
      with pytest.raises(tf.errors.OutOfRangeError):
        sess.run(fetch)


def test_each_takes_another_record_of_a_step():
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(12))
  result = _train(iterator.get_next())
  with smart_stage_sessions.smart_stage_session() as sess:
    sess.run(result)
    later, last = iterator.get_next(), iterator.get_next()
    found = [sess.run([(result - 1000) // 2, later, last]) for _ in range(3)]
    assert sorted(sum(found, [])) == list(range(1, 10))
    assert [sorted(step) for step in found] == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert sess.run(later, {later: 7}) == 7
    assert sess.run(result) == 1020


def test_an_initialisation_restarts_it_too():
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(5))
  result = _train(iterator.get_next())
  with smart_stage_sessions.smart_stage_session(iterator.initializer, capacity=3) as sess:
    later = iterator.get_next()
    assert [sess.run(result), sess.run(later)] == [1000, 1]
    sess.run(iterator.initializer)
    assert [sess.run(later), sess.run(result)] == [0, 1002]


@pytest.mark.parametrize("version", [1, 2])
def test_a_branch_takes_a_record_only_if_it_is_chosen(version):
  """With version 2, the branch is a function that gets the handle: it reads beside the stage, and a warning says so."""
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(12))
  result = _train(iterator.get_next())
  choose = tf.placeholder(tf.bool, [])
  with smart_stage_sessions.smart_stage_session() as sess:
    sess.run(result)
    with control_flow.version(version):
      later = tf.cond(choose, iterator.get_next, lambda: tf.constant(-1, tf.int64))
    assert sess.run(later, {choose: False}) == -1
    if version == 1:
      assert sess.run(later, {choose: True}) == 1
      assert sess.run(later, {choose: False}) == -1
      assert sess.run(result) == 1004


def test_a_loop_takes_a_record_in_each_iteration():
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(12))
  result = _train(iterator.get_next())
  with smart_stage_sessions.smart_stage_session() as sess:
    sess.run(result)
    with control_flow.version(1):
      body = lambda i, total: (i + 1, total + iterator.get_next())
      total = tf.while_loop(lambda i, _: i < 3, body, [0, tf.constant(0, tf.int64)])[1]
    assert sess.run(total) == 1 + 2 + 3
    assert sess.run(result) == 1008


def test_several_producers_lose_nothing():
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(200))
  result = _train(iterator.get_next())
  found = collections.Counter()
  with smart_stage_sessions.smart_stage_session(num_threads=4, capacity=8) as sess:
    later = iterator.get_next()
    with contextlib.suppress(tf.errors.OutOfRangeError):
      while True:
        found[(sess.run(result) - 1000) // 2] += 1
        found[sess.run(later)] += 1
  assert found == collections.Counter(range(200))


def test_in_a_chain_records_come_from_the_last_stage():
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(12))
  number = iterator.get_next()
  table = tf.get_variable("table", initializer=tf.range(100.0))
  loss = tf.gather(table, number)
  config = smart_stage_sessions.smart_stage_config(capacity=3)
  options = config.graph_options.optimizer_options
  options.do_async_embedding = True
  options.async_embedding_options.capacity = 2
  options.async_embedding_options.threads_num = 1
  train = tf.train.GradientDescentOptimizer(0.0).minimize(loss * tf.get_variable("weight", initializer=1.0))
  with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      assert sess.run([loss, train])[0] == 0
      for expected in range(1, 11, 2):
        assert sess.run(iterator.get_next()) == expected
        assert sess.run([loss, train])[0] == expected + 1


def test_a_session_of_a_server():
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(12))
  result = _train(iterator.get_next())
  target = tf.train.Server.create_local_server().target
  with tf.Session(target, config=smart_stage_sessions.smart_stage_config(capacity=3)) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(result) == 1000
      assert sess.run(iterator.get_next()) == 1
      assert sess.run(result) == 1004


def _joined(iterator):
  other = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100))
  why = "holds the elements of 'IteratorGetNext', 'IteratorGetNext_1'"
  return _train(iterator.get_next() + other.get_next()), {}, why


def _without_elements(iterator):
  return _train(iterator.get_next() + 1), {"carry_elements": False}, "carry_elements=False"


@pytest.mark.parametrize("build", [_joined, _without_elements])
def test_a_run_that_would_read_beside_the_stage_is_an_error_and_takes_nothing(build):
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(12))
  result, options, why = build(iterator)
  with smart_stage_sessions.smart_stage_session(**options) as sess:
    first = sess.run(result)
    later = iterator.get_next(name="later")
    with pytest.raises(tf.errors.FailedPreconditionError, match=f"'later' .*stage 'prefetch'.*{why}"):
      sess.run([result, later])
    step = sess.run(result) - first
    assert step == (4 if build is _joined else 2)
