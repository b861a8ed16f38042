# SPDX-License-Identifier: Apache-2.0
"""Several `running` blocks of one session: the end of the last one stops the stages."""

import threading

import pytest
import tensorflow as tf

from tensorflow_staging.python.session import all_sessions
from tensorflow_staging.python.session import started_runners
from tensorflow_staging.python.testing import test_util


def test_the_stages_go_on_after_a_nested_block():
  record = tf.staged(test_util.dataset_record(100))
  hook = tf.make_prefetch_hook()
  with tf.Session() as sess:
    with hook.running(sess):
      with tf.make_prefetch_hook().running(sess):
        assert sess.run(record) == 0
      # More than a stopped stage keeps.
      assert [sess.run(record) for _ in range(10)] == list(range(1, 11))
    test_util.assert_no_stage_thread()
    with hook.running(sess):
      assert sess.run(record) == 11


def test_the_stages_go_on_after_a_nested_block_that_fails():
  record = tf.staged(test_util.dataset_record(100))
  hook = tf.make_prefetch_hook()
  with tf.Session() as sess, hook.running(sess):
    with pytest.raises(ZeroDivisionError), hook.running(sess):
      raise ZeroDivisionError
    assert [sess.run(record) for _ in range(10)] == list(range(10))


def test_the_last_of_the_threads_stops_the_stages():
  record = tf.staged(test_util.dataset_record(100))
  hook = tf.make_prefetch_hook()
  may_end = threading.Event()
  inside = threading.Event()
  with tf.Session() as sess:

    def other():
      with hook.running(sess):
        inside.set()
        assert may_end.wait(test_util.WAIT_SECONDS)

    thread = threading.Thread(target=other)
    with hook.running(sess):
      thread.start()
      assert inside.wait(test_util.WAIT_SECONDS)
    assert [sess.run(record) for _ in range(10)] == list(range(10))
    may_end.set()
    thread.join(test_util.WAIT_SECONDS)
    test_util.assert_no_stage_thread()


def test_a_block_that_begins_while_the_last_one_ends_starts_the_stages_anew(monkeypatch):
  record = tf.staged(test_util.dataset_record(100))
  hook = tf.make_prefetch_hook()
  ends, may_stop = threading.Event(), threading.Event()
  stop_together = started_runners.stop_together

  def stop_late(everything):
    ends.set()
    assert may_stop.wait(test_util.WAIT_SECONDS)
    stop_together(everything)

  monkeypatch.setattr(started_runners, "stop_together", stop_late)
  with tf.Session() as sess:

    def other():
      with hook.running(sess):
        pass

    thread = threading.Thread(target=other)
    thread.start()
    assert ends.wait(test_util.WAIT_SECONDS)
    with hook.running(sess):
      may_stop.set()
      thread.join(test_util.WAIT_SECONDS)
      assert [sess.run(record) for _ in range(10)] == list(range(10))
    test_util.assert_no_stage_thread()


def test_a_block_that_cannot_begin_counts_for_nothing(monkeypatch):
  tf.staged(test_util.dataset_record(100))
  hook = tf.make_prefetch_hook()
  with tf.Session() as sess:

    def fail(*_):
      raise ZeroDivisionError

    with monkeypatch.context() as patch:
      patch.setattr(all_sessions, "start", fail)
      with pytest.raises(ZeroDivisionError), hook.running(sess):
        pass
    with hook.running(sess):
      assert test_util.stage_threads()
    test_util.assert_no_stage_thread()


def test_a_block_needs_a_session():
  with pytest.raises(TypeError, match="session must be a tf.compat.v1.Session, got 3"):
    with tf.make_prefetch_hook().running(3):
      pass


def test_the_end_of_the_hook_stops_the_stages_inside_a_block():
  record = tf.staged(test_util.dataset_record(100))
  hook = tf.make_prefetch_hook()
  with tf.Session() as sess, hook.running(sess):
    assert sess.run(record) == 0
    hook.end(sess)
    test_util.assert_no_stage_thread()
