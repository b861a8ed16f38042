# SPDX-License-Identifier: Apache-2.0
"""Closing is safe in any order: session, hook, coordinator, interpreter exit."""

from __future__ import annotations

import gc
import threading

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util


def _full_stage():
  """Returns the source and the record of a stage whose buffer fills up, so that its producer waits for room."""
  source = test_util.Source()
  return source, tf.staged(source.tensor(), capacity=2)


def _start(sess, source, coord=None):
  hook = tf.make_prefetch_hook()
  hook.after_create_session(sess, coord)
  source.wait_until_asked(3)
  return hook


def test_hook_then_session():
  source, record = _full_stage()
  sess = tf.Session()
  hook = _start(sess, source)
  assert sess.run(record) == 0
  hook.end(sess)
  test_util.assert_no_stage_thread()
  sess.close()


def test_session_then_hook():
  source, record = _full_stage()
  sess = tf.Session()
  hook = _start(sess, source)
  assert sess.run(record) == 0
  sess.close()
  test_util.assert_no_stage_thread()
  hook.end(sess)
  hook.end(sess)


def test_session_that_is_deleted_and_never_closed():
  source, _ = _full_stage()
  sess = tf.Session()
  hook = _start(sess, source)
  del sess
  gc.collect()
  test_util.assert_no_stage_thread()
  hook.end(None)


@pytest.mark.parametrize("order", ["coordinator", "session", "hook"])
def test_coordinator_in_any_order(order):
  source, _ = _full_stage()
  sess = tf.Session()
  coord = tf.train.Coordinator()
  hook = _start(sess, source, coord)
  if order == "session":
    sess.close()
  elif order == "hook":
    hook.end(sess)
  coord.request_stop()
  coord.join(stop_grace_period_secs=test_util.WAIT_SECONDS)
  test_util.assert_no_stage_thread()
  hook.end(sess)
  sess.close()


def test_everything_at_once():
  source, _ = _full_stage()
  sess = tf.Session()
  coord = tf.train.Coordinator()
  hook = _start(sess, source, coord)
  barrier = threading.Barrier(3)

  def at_once(action):
    barrier.wait()
    action()

  threads = [
      threading.Thread(target=at_once, args=[action])
      for action in (sess.close, coord.request_stop, lambda: hook.end(sess))
  ]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  coord.join(stop_grace_period_secs=test_util.WAIT_SECONDS)


def test_starting_again_with_the_same_coordinator_starts_no_further_thread():
  source, _ = _full_stage()
  coord = tf.train.Coordinator()
  before = [thread.name for thread in threading.enumerate()].count("staging_stop")
  with tf.Session() as sess:
    hook = _start(sess, source, coord)
    for _ in range(3):
      hook.after_create_session(sess, coord)
    assert [thread.name for thread in threading.enumerate()].count("staging_stop") == before + 1
    coord.request_stop()
    coord.join(stop_grace_period_secs=test_util.WAIT_SECONDS)
    test_util.assert_no_stage_thread()


class _WaitingStep:
  """Runs a step, which waits for a record, in a thread of its own."""

  def __init__(self, sess, record):
    self._begins = threading.Event()
    self._error = None
    self._thread = threading.Thread(target=self._run, args=[sess, record])
    self._thread.start()
    self._begins.wait()

  def join(self) -> Exception | None:
    """Waits for the end of the step and returns the error that it raised, if any."""
    self._thread.join()
    return self._error

  def _run(self, sess, record):
    self._begins.set()
    try:
      sess.run(record)
    except (RuntimeError, tf.errors.OpError) as error:
      self._error = error


def test_closing_the_session_cancels_a_step_and_a_stage_that_wait():
  # A queue without an enqueue op acts as input that hangs.
  record = tf.staged(tf.FIFOQueue(1, [tf.int64]).dequeue())
  sess = tf.Session()
  hook = tf.make_prefetch_hook()
  hook.after_create_session(sess)
  step = _WaitingStep(sess, record)
  sess.close()
  # Python raises RuntimeError if the step begins after the session has closed.
  assert isinstance(step.join(), (tf.errors.CancelledError, RuntimeError))
  test_util.assert_no_stage_thread()


def test_stopping_the_stages_cancels_a_step_that_waits():
  source = test_util.Source()
  source.hold()
  record = tf.staged(source.tensor())
  with tf.Session() as sess:
    hook = tf.make_prefetch_hook()
    hook.after_create_session(sess)
    source.wait_until_asked(1)
    step = _WaitingStep(sess, record)
    stopping = threading.Thread(target=hook.end, args=[sess])
    stopping.start()
    assert isinstance(step.join(), tf.errors.CancelledError)
    # The Python function that the stage runs cannot be cancelled, so stopping waits for it.
    source.release()
    stopping.join()
    test_util.assert_no_stage_thread()


def test_input_that_hangs_does_not_block_the_hook_for_long():
  tf.staged(tf.FIFOQueue(1, [tf.int64]).dequeue())
  with tf.Session() as sess:
    hook = tf.make_prefetch_hook()
    hook.after_create_session(sess)
    hook.end(sess)
  test_util.assert_no_stage_thread()


def test_a_closed_session_cannot_run_stages():
  tf.staged(tf.constant(1))
  sess = tf.Session()
  sess.close()
  with pytest.raises((RuntimeError, tf.errors.OpError), match="[Cc]losed"):
    tf.make_prefetch_hook().after_create_session(sess)


def test_starting_again_after_stopping_goes_on_with_what_was_buffered():
  source, record = _full_stage()
  with tf.Session() as sess:
    hook = _start(sess, source)
    assert sess.run(record) == 0
    # The producer asks for the next record when it has put record 2.
    source.wait_until_asked(4)
    hook.end(sess)
    with hook.running(sess):
      first, second = sess.run(record), sess.run(record)
      assert (first, second) == (1, 2)


def test_an_exception_in_the_loop_stops_the_stages():
  source, record = _full_stage()
  with pytest.raises(KeyError, match="mine"):
    with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
      source.wait_until_asked(3)
      sess.run(record)
      raise KeyError("mine")
  test_util.assert_no_stage_thread()


_EXITS = {
    "nothing is closed": "",
    "the session is deleted": "del sess",
    "the program fails": "raise SystemExit(0)",
    "the hook is deleted": "del hook",
}


@pytest.mark.parametrize("last_statement", _EXITS.values(), ids=_EXITS)
def test_interpreter_exit(tmp_path, last_statement):
  output = test_util.run_program(
      f"""
      import itertools
      import numpy as np
      import tensorflow as tf

      numbers = itertools.count()
      record = tf.numpy_function(lambda: np.int64(next(numbers)), [], tf.int64)
      record = tf.staged(record, capacity=2, num_threads=2)
      sess = tf.Session()
      coord = tf.train.Coordinator()
      hook = tf.make_prefetch_hook()
      hook.after_create_session(sess, coord)
      sess.run(record)
      print("done", flush=True)
      {last_statement}
      """, tmp_path)
  assert output == "done\n"
