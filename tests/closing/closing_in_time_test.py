# SPDX-License-Identifier: Apache-2.0
"""Closing takes less than five seconds and leaves no thread, whichever threads wait."""

import contextlib
import gc
import threading
import time

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util

_LIMIT_SECONDS = 5


def _close(sess, hook, coord):
  sess.close()


def _end(sess, hook, coord):
  hook.end(sess)


def _stop(sess, hook, coord):
  coord.request_stop()
  coord.join(stop_grace_period_secs=test_util.WAIT_SECONDS)


_WAYS = pytest.mark.parametrize("way", [_close, _end, _stop])


@contextlib.contextmanager
def _without_what_others_left():
  """What earlier tests have left would take the collector seconds."""
  gc.freeze()
  try:
    yield
  finally:
    gc.unfreeze()


@_WAYS
def test_producers_wait_for_room(way):
  source = test_util.Source()
  tf.staged(source.tensor(), num_threads=8)
  with tf.Session() as sess:
    hook, coord = tf.make_prefetch_hook(), tf.train.Coordinator()
    hook.after_create_session(sess, coord)
    source.wait_until_asked(2)
    begin = time.monotonic()
    way(sess, hook, coord)
    assert time.monotonic() - begin < _LIMIT_SECONDS
    test_util.assert_no_stage_thread()


@_WAYS
def test_producers_and_consumers_wait_for_input(way):
  # A queue without an enqueue op acts as input that hangs.
  record = tf.staged(tf.FIFOQueue(1, [tf.int64]).dequeue(), num_threads=8)
  sess = tf.Session()
  hook, coord = tf.make_prefetch_hook(), tf.train.Coordinator()
  hook.after_create_session(sess, coord)
  begun = threading.Semaphore(0)
  raised = []

  def step():
    begun.release()
    try:
      sess.run(record)
    except (RuntimeError, tf.errors.CancelledError) as error:
      raised.append(error)

  steps = [threading.Thread(target=step) for _ in range(3)]
  for thread in steps:
    thread.start()
  for _ in steps:
    begun.acquire()
  begin = time.monotonic()
  way(sess, hook, coord)
  for thread in steps:
    thread.join()
  assert time.monotonic() - begin < _LIMIT_SECONDS
  assert len(raised) == len(steps)
  # Only closing the session cancels input that hangs.
  sess.close()
  test_util.assert_no_stage_thread()


@_WAYS
def test_an_iterator_waits_for_input(way):
  # The producer's own thread waits in the iterator.
  queue = tf.FIFOQueue(1, [tf.int64], shapes=[[]])
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(9).map(lambda _: queue.dequeue()))
  tf.staged(iterator.get_next())
  with tf.Session() as sess:
    sess.run(iterator.initializer)
    hook, coord = tf.make_prefetch_hook(), tf.train.Coordinator()
    hook.after_create_session(sess, coord)
    begin = time.monotonic()
    way(sess, hook, coord)
    assert time.monotonic() - begin < _LIMIT_SECONDS
  test_util.assert_no_stage_thread()


@_WAYS
def test_several_stages_wait_for_input(way):
  for _ in range(3):
    tf.staged(tf.FIFOQueue(1, [tf.int64]).dequeue())
  with tf.Session() as sess:
    hook, coord = tf.make_prefetch_hook(), tf.train.Coordinator()
    hook.after_create_session(sess, coord)
    begin = time.monotonic()
    way(sess, hook, coord)
    assert time.monotonic() - begin < _LIMIT_SECONDS
  test_util.assert_no_stage_thread()


@_WAYS
def test_python_code_that_does_not_return(way):
  asked, returns = threading.Event(), threading.Event()

  def hang() -> np.int64:
    asked.set()
    returns.wait()
    return np.int64(1)

  for _ in range(4):
    tf.staged(tf.numpy_function(hang, [], tf.int64))
  sess = tf.Session()
  hook, coord = tf.make_prefetch_hook(), tf.train.Coordinator()
  hook.after_create_session(sess, coord)
  asked.wait()
  try:
    with _without_what_others_left():
      begin = time.monotonic()
      way(sess, hook, coord)
      sess.close()
      del sess
      gc.collect()
      assert time.monotonic() - begin < _LIMIT_SECONDS
  finally:
    returns.set()
  test_util.assert_no_stage_thread()


def test_the_interpreter_exits_while_producers_and_consumers_wait(tmp_path):
  output = test_util.run_program(
      f"""
      import atexit
      import threading
      import time

      # Registered before TensorFlow registers anything, so that it is called last.
      atexit.register(lambda: print("in time", time.monotonic() - begin < {_LIMIT_SECONDS}))

      import tensorflow as tf

      record = tf.staged(tf.FIFOQueue(1, [tf.int64]).dequeue(), num_threads=8)
      full = tf.staged(tf.constant(1), num_threads=8)
      sess = tf.Session()
      tf.make_prefetch_hook().after_create_session(sess)
      stepping = threading.Event()

      def step():
        stepping.set()
        try:
          sess.run(record)
        except (tf.errors.CancelledError, RuntimeError):
          pass

      threading.Thread(target=step, daemon=True).start()
      stepping.wait()
      sess.run(full)
      begin = time.monotonic()
      """, tmp_path)
  assert output == "in time True\n"


def test_the_main_modules_code_outlives_it(tmp_path):
  output = test_util.run_program(
      """
      import atexit
      import sys
      import weakref

      code = weakref.ref(sys._getframe().f_code)
      # Registered before TensorFlow registers anything, so that it is called last.
      atexit.register(lambda: print("alive", code() is not None))

      import tensorflow as tf
      """, tmp_path)
  assert output == "alive True\n"


def test_a_session_that_is_deleted():
  source = test_util.Source()
  tf.staged(source.tensor(), num_threads=8)
  sess = tf.Session()
  tf.make_prefetch_hook().after_create_session(sess)
  source.wait_until_asked(2)
  with _without_what_others_left():
    begin = time.monotonic()
    del sess
    gc.collect()
    assert time.monotonic() - begin < _LIMIT_SECONDS
  test_util.assert_no_stage_thread()


def test_python_code_that_holds_every_thread_of_the_session():
  source = test_util.Source()
  source.hold()
  tf.staged(source.tensor())
  config = tf.ConfigProto(inter_op_parallelism_threads=1, use_per_session_threads=True)
  with tf.Session(config=config) as sess:
    hook = tf.make_prefetch_hook()
    hook.after_create_session(sess)
    source.wait_until_asked(1)
    ending = threading.Thread(target=hook.end, args=[sess])
    ending.start()
    ending.join(_LIMIT_SECONDS)
    in_time = not ending.is_alive()
    source.release()
    ending.join()
  assert in_time
  test_util.assert_no_stage_thread()
