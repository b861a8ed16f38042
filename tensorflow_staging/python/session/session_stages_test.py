# SPDX-License-Identifier: Apache-2.0
"""Threads that start and stop the stages of one session at the same time."""

from __future__ import annotations

import os
import sys
import threading
import time

import tensorflow as tf

from tensorflow_staging.python.testing import test_util


class _SlowSession(tf.Session):
  """A session to which a graph is sent only when the test allows it, like that of a slow server."""

  def __init__(self, *args, **kwargs):
    super().__init__(*args, **kwargs)
    self.asked = threading.Semaphore(0)
    self.answers = threading.Event()
    self.error = None

  def _extend_graph(self):
    self.asked.release()
    assert self.answers.wait(test_util.WAIT_SECONDS)
    if self.error is not None:
      error, self.error = self.error, None
      raise error
    super()._extend_graph()


class _Start(threading.Thread):
  """Starts the stages of a session in a thread of its own."""

  def __init__(self, sess):
    super().__init__(daemon=True)
    self._sess = sess
    self.error = None
    self.start()

  def run(self):
    try:
      tf.make_prefetch_hook().after_create_session(self._sess)
    except tf.errors.OpError as error:
      self.error = error

  def wait_until_it_waits(self) -> None:
    """Waits until this thread waits for another one."""
    deadline = time.monotonic() + test_util.WAIT_SECONDS
    while time.monotonic() < deadline:
      frame = sys._current_frames().get(self.ident)
      if frame is not None and frame.f_code is threading.Condition.wait.__code__:
        return
      os.sched_yield()
    raise AssertionError("the thread does not wait")


def _begin_to_start(sess, count) -> list[_Start]:
  """Lets one thread send the graph, and the others wait for it."""
  starts = [_Start(sess)]
  assert sess.asked.acquire(timeout=test_util.WAIT_SECONDS)
  starts += [_Start(sess) for _ in range(count - 1)]
  for start in starts:
    start.wait_until_it_waits()
  return starts


def _join(starts) -> list[Exception | None]:
  """Waits for the end of the starts, and returns the error of each."""
  for start in starts:
    start.join()
  return [start.error for start in starts]


def test_threads_that_start_together_start_the_stages_once():
  # So few records that the data may end before the last thread looks.
  record = tf.staged(test_util.dataset_record(2), capacity=3)
  with _SlowSession() as sess:
    starts = _begin_to_start(sess, 4)
    sess.answers.set()
    assert _join(starts) == [None] * 4
    assert not sess.asked.acquire(blocking=False)
    assert test_util.drain(sess, record) == [0, 1]
    tf.make_prefetch_hook().end(sess)


def test_after_an_error_the_next_thread_starts_the_stages():
  record = tf.staged(tf.constant(1))
  with _SlowSession() as sess:
    sess.error = tf.errors.UnavailableError(None, None, "not yet")
    starts = _begin_to_start(sess, 3)
    sess.answers.set()
    errors = _join(starts)
    assert [str(error) for error in errors if error] == ["not yet"]
    assert sess.run(record) == 1
    tf.make_prefetch_hook().end(sess)


def test_stopping_cancels_every_start_that_has_begun():
  record = tf.staged(tf.constant(1))
  hook = tf.make_prefetch_hook()
  with _SlowSession() as sess:
    first, *others = _begin_to_start(sess, 3)
    hook.end(sess)
    # Those that wait for the first one end at once, and a start that begins now waits for it.
    assert all(isinstance(error, tf.errors.CancelledError) for error in _join(others))
    last = _Start(sess)
    last.wait_until_it_waits()
    assert first.is_alive() and not sess.asked.acquire(blocking=False)
    sess.answers.set()
    assert isinstance(*_join([first]), tf.errors.CancelledError)
    assert _join([last]) == [None]
    assert sess.run(record) == 1
    hook.end(sess)


def test_sessions_of_one_graph_that_start_together_give_each_generator_its_own_session():
  def numbers(sess):
    yield [sess.number]

  number = tf.placeholder(tf.int64, [])
  record = tf.staged(number, feed_list=[number], feed_generator=numbers)
  sessions = [_SlowSession() for _ in range(8)]
  starts = []
  for i, sess in enumerate(sessions):
    sess.number = i
    starts += _begin_to_start(sess, 1)
  for sess in sessions:
    sess.answers.set()
  assert _join(starts) == [None] * 8
  assert [sess.run(record) for sess in sessions] == list(range(8))
  for sess in sessions:
    tf.make_prefetch_hook().end(sess)
    sess.close()
