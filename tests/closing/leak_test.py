# SPDX-License-Identifier: Apache-2.0
"""Hundreds of sessions with stages, closed in each of four ways, leave neither threads nor memory behind."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util

# In each way.
_ROUNDS = 500
# Enough sessions to fill every cache and pool, so that the rest of the test measures growth only.
_WARM_UP = 100
# 20 KiB per session: a leaked thread, buffer or session takes much more.
_GROWTH_BYTES = 20 * 1024 * (_ROUNDS - _WARM_UP)


def _close(sess, hook, coord):
  sess.close()
  hook.end(sess)


def _end(sess, hook, coord):
  hook.end(sess)
  sess.close()


def _stop(sess, hook, coord):
  coord.request_stop()
  coord.join()
  sess.close()


def _delete(sess, hook, coord):
  """Closes nothing: the caller deletes the last reference to the session."""


@pytest.mark.parametrize("way", [_close, _end, _stop, _delete])
def test_hundreds_of_sessions(way):
  number = tf.placeholder_with_default(tf.constant(7, tf.int64), [])
  record = tf.staged(number, capacity=2, num_threads=2)
  hook = tf.make_prefetch_hook()
  for i in range(_ROUNDS):
    sess = tf.Session()
    coord = tf.train.Coordinator() if way is _stop else None
    hook.after_create_session(sess, coord)
    assert sess.run(record) == 7
    way(sess, hook, coord)
    del sess
    if i == _WARM_UP:
      threads, resident = test_util.num_threads(), test_util.resident_bytes()
  test_util.assert_no_stage_thread()
  test_util.assert_no_more_threads_than(threads)
  assert test_util.resident_bytes() - resident < _GROWTH_BYTES
