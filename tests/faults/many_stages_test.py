# SPDX-License-Identifier: Apache-2.0
"""A hundred stages in one graph, and many sessions with SmartStage; leak_test.py has two thousand with tf.staged.

STAGING_SESSIONS says how many sessions, 120 by default.
"""

import os

import tensorflow as tf

from tensorflow_staging.python.testing import stage_kinds
from tensorflow_staging.python.testing import test_util

_STAGES = 100
_SESSIONS = int(os.environ.get("STAGING_SESSIONS", "120"))
# Enough sessions to fill every cache and pool, so that the rest of the test measures growth only.
_WARM_UP = _SESSIONS // 3
# 20 KiB per session, of which a leaked thread, buffer or session takes much more, and what one allocation may add.
_GROWTH_BYTES = 20 * 1024 * (_SESSIONS - _WARM_UP) + (2 << 20)


def _numbers(count: int, **arguments) -> list[tf.Tensor]:
  dataset = tf.data.Dataset.range(5)
  return [tf.data.make_one_shot_iterator(dataset).get_next() + i for i in range(count)]


def test_stages_beside_each_other():
  records = [tf.staged(number, capacity=2) for number in _numbers(_STAGES)]
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, records) == [[i + k for i in range(_STAGES)] for k in range(5)]
    assert len(tf.staging.stats(sess)) == _STAGES


def test_stages_after_each_other():
  record, = _numbers(1)
  for _ in range(_STAGES):
    record = tf.staged(record + 1)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, record) == [k + _STAGES for k in range(5)]
    assert len(tf.staging.stats(sess)) == _STAGES


def test_stages_of_smart_stage():
  steps = []
  for i, number in enumerate(_numbers(_STAGES)):
    with tf.variable_scope(str(i)):
      step, config = stage_kinds.stage(number, smart_stage=True, capacity=2)
      steps.append(step)
  with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      assert test_util.drain(sess, steps) == [[i + k for i in range(_STAGES)] for k in range(5)]
      assert tf.staging.stats(sess)


def test_many_sessions_with_smart_stage():
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(3))
  step, config = stage_kinds.stage(iterator.get_next(), smart_stage=True, capacity=2, num_threads=2)
  start = tf.group(tf.global_variables_initializer(), iterator.initializer)
  hook = tf.make_prefetch_hook()
  for i in range(_SESSIONS):
    with tf.Session(config=config) as sess:
      sess.run(start)
      with hook.running(sess):
        assert sess.run(step) in range(3)
    del sess
    if i == _WARM_UP:
      threads, resident = test_util.num_threads(), test_util.resident_bytes()
  test_util.assert_no_stage_thread()
  test_util.assert_no_more_threads_than(threads)
  assert test_util.resident_bytes() - resident < _GROWTH_BYTES
