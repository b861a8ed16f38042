# SPDX-License-Identifier: Apache-2.0
"""A step that uses staged tensors in a session without the hook soon fails, and its error names the hook."""

import time

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util

_LIMIT_SECONDS = 10


def test_a_plain_session_without_the_hook():
  record = tf.staged(test_util.dataset_record(3), name="my_input")
  with tf.Session() as sess:
    begin = time.monotonic()
    with pytest.raises(tf.errors.FailedPreconditionError) as raised:
      sess.run(record)
  assert time.monotonic() - begin < _LIMIT_SECONDS
  assert "my_input" in raised.value.message
  assert "tf.make_prefetch_hook()" in raised.value.message


def test_a_stage_that_is_created_after_the_hook_has_started():
  source = test_util.dataset_record(3)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    late = tf.staged(source)
    with pytest.raises(tf.errors.FailedPreconditionError, match="created after the hook had started does not run"):
      sess.run(late)


def test_an_evaluation_session_without_the_hook_after_training_with_it():
  record = tf.staged(tf.constant(1))
  with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
    assert sess.run(record) == 1
  begin = time.monotonic()
  with pytest.raises(tf.errors.FailedPreconditionError, match="'prefetch'.*tf.make_prefetch_hook"):
    with tf.train.MonitoredSession() as sess:
      sess.run(record)
  assert time.monotonic() - begin < _LIMIT_SECONDS


def test_slow_input_with_the_hook_is_not_mistaken_for_a_missing_hook():
  source = test_util.Source()
  source.hold()
  record = tf.staged(source.tensor())
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    options = tf.RunOptions(timeout_in_ms=7000)
    try:
      # Longer than a step without the hook would wait: only the step's own timeout ends it.
      with pytest.raises(tf.errors.DeadlineExceededError):
        sess.run(record, options=options)
    finally:
      source.release()
    assert sess.run(record) == 0
