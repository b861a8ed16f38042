# SPDX-License-Identifier: Apache-2.0
"""Pools live as long as the sessions that use them, no longer and no shorter."""

import os
import threading
import time

import tensorflow as tf

from tensorflow_staging.python import staging_testing
from tensorflow_staging.python import thread_report_testing as threads_testing

_ROUNDS = 1000
# Enough for the process's own pools to be complete.
_WARM_UP = 20
# How long the kernel may take to forget a thread that was joined.
_KERNEL_SECONDS = 1


def _threads() -> int:
  return len(os.listdir("/proc/self/task"))


def test_a_thousand_sessions_leave_no_thread():
  number = tf.constant(7)
  config = threads_testing.config("", "thousand")
  for i in range(_ROUNDS):
    with tf.Session(config=config) as sess:
      assert sess.run(number, options=threads_testing.on_pool(i % 2)) == 7
    del sess
    if i == _WARM_UP:
      threads = _threads()
  deadline = time.monotonic() + _KERNEL_SECONDS
  while _threads() > threads and time.monotonic() < deadline:
    os.sched_yield()
  assert _threads() <= threads
  threads_testing.assert_pool_threads("thousand", 0)


def test_sessions_of_one_name_share_one_pool():
  report = threads_testing.report()
  config = threads_testing.config("shared")
  options = threads_testing.on_pool(0)
  with tf.Session(config=config) as training, tf.Session(config=config) as evaluation:
    # A name ends in the thread's id.
    names = [list(sess.run(report, options=options).names) for sess in (training, evaluation)]
    assert names[0] == names[1]
    threads_testing.assert_pool_threads("shared", 2)


def test_the_same_name_with_other_sizes_is_a_pool_of_its_own():
  config = threads_testing.config("sized")
  larger = threads_testing.config("sized")
  larger.session_stage_subgraph_thread_pool[0].intra_op_threads_num = 3
  with tf.Session(config=config), tf.Session(config=larger):
    threads_testing.assert_pool_threads("sized_inter_op", 2)
    threads_testing.assert_pool_threads("sized_intra_op", 4)


def test_a_pool_outlives_the_first_session_that_shares_it():
  """The second session is in the middle of a run on the pool when the first one goes."""
  config = threads_testing.config("outlives")
  in_run = threading.Event()
  first_is_gone = threading.Event()

  def wait():
    in_run.set()
    assert first_is_gone.wait(staging_testing.WAIT_SECONDS)

  report = threads_testing.report()
  with tf.control_dependencies([tf.numpy_function(wait, [], [])]):
    after = threads_testing.report()
  options = threads_testing.on_pool(0)
  first = tf.Session(config=config)
  second = tf.Session(config=config)
  threads_testing.assert_on_pool(first.run(report, options=options), "outlives")

  found = []

  def run(sess):
    found.append(sess.run(after, options=options))

  thread = threading.Thread(target=run, args=(second,))
  thread.start()
  assert in_run.wait(staging_testing.WAIT_SECONDS)
  first.close()
  del first
  first_is_gone.set()
  thread.join()
  threads_testing.assert_on_pool(found[0], "outlives")
  threads_testing.assert_on_pool(second.run(report, options=options), "outlives")
  threads_testing.assert_pool_threads("outlives", 2)

  second.close()
  del second, thread
  threads_testing.assert_pool_threads("outlives", 0)


def test_a_stage_on_a_shared_pool_goes_on_when_the_other_session_goes():
  number = tf.staged(staging_testing.dataset_record(1000), use_stage_subgraph_thread_pool=True)
  config = threads_testing.config("stages")
  first = tf.Session(config=config)
  hook = tf.make_prefetch_hook()
  hook.after_create_session(first)
  with tf.Session(config=config) as second, tf.make_prefetch_hook().running(second):
    assert first.run(number) == second.run(number) == 0
    first.close()
    hook.end(first)
    del first, hook
    assert staging_testing.drain(second, number) == list(range(1, 1000))
