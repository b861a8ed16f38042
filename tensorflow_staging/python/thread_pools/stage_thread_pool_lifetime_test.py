# SPDX-License-Identifier: Apache-2.0
"""A pool lives exactly as long as the sessions that use it."""

import threading

import tensorflow as tf

from tensorflow_staging.python.testing import test_util
from tensorflow_staging.python.testing import thread_report

_ROUNDS = 1000
# Enough sessions for the process to have created all its own pools.
_WARM_UP = 20


def test_a_thousand_sessions_leave_no_thread():
  number = tf.constant(7)
  config = thread_report.config("", "thousand")
  for i in range(_ROUNDS):
    with tf.Session(config=config) as sess:
      assert sess.run(number, options=thread_report.on_pool(i % 2)) == 7
    del sess
    if i == _WARM_UP:
      threads = test_util.num_threads()
  test_util.assert_no_more_threads_than(threads)
  thread_report.assert_pool_threads("thousand", 0)


def test_sessions_of_one_name_share_one_pool():
  report = thread_report.report()
  config = thread_report.config("shared")
  options = thread_report.on_pool(0)
  with tf.Session(config=config) as training, tf.Session(config=config) as evaluation:
    # Each name ends with the id of its thread, so equal names are the same threads.
    names = [list(sess.run(report, options=options).names) for sess in (training, evaluation)]
    assert names[0] == names[1]
    thread_report.assert_pool_threads("shared", 2)


def test_the_same_name_with_other_sizes_is_a_pool_of_its_own():
  config = thread_report.config("sized")
  larger = thread_report.config("sized")
  larger.session_stage_subgraph_thread_pool[0].intra_op_threads_num = 3
  with tf.Session(config=config), tf.Session(config=larger):
    thread_report.assert_pool_threads("sized_inter_op", 2)
    thread_report.assert_pool_threads("sized_intra_op", 4)


def test_a_pool_outlives_the_first_session_that_shares_it():
  """The first session closes and is deleted while the second one is in the middle of a run on the pool."""
  config = thread_report.config("outlives")
  in_run = threading.Event()
  first_is_deleted = threading.Event()

  def wait():
    in_run.set()
    assert first_is_deleted.wait(test_util.WAIT_SECONDS)

  report = thread_report.report()
  with tf.control_dependencies([tf.numpy_function(wait, [], [])]):
    after = thread_report.report()
  options = thread_report.on_pool(0)
  first = tf.Session(config=config)
  second = tf.Session(config=config)
  thread_report.assert_on_pool(first.run(report, options=options), "outlives")

  found = []

  def run(sess):
    found.append(sess.run(after, options=options))

  thread = threading.Thread(target=run, args=(second,))
  thread.start()
  assert in_run.wait(test_util.WAIT_SECONDS)
  first.close()
  del first
  first_is_deleted.set()
  thread.join()
  thread_report.assert_on_pool(found[0], "outlives")
  thread_report.assert_on_pool(second.run(report, options=options), "outlives")
  thread_report.assert_pool_threads("outlives", 2)

  second.close()
  del second, thread
  thread_report.assert_pool_threads("outlives", 0)


def test_a_stage_on_a_shared_pool_goes_on_after_the_other_session_closes():
  number = tf.staged(test_util.dataset_record(1000), use_stage_subgraph_thread_pool=True)
  config = thread_report.config("stages")
  first = tf.Session(config=config)
  hook = tf.make_prefetch_hook()
  hook.after_create_session(first)
  with tf.Session(config=config) as second, tf.make_prefetch_hook().running(second):
    assert first.run(number) == second.run(number) == 0
    first.close()
    hook.end(first)
    del first, hook
    assert test_util.drain(second, number) == list(range(1, 1000))
