# SPDX-License-Identifier: Apache-2.0
"""Partial runs on a stage thread pool."""

import threading

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import thread_report


@pytest.mark.parametrize("pool", [0, 1])
def test_every_part_runs_on_both_pools_of_its_id(pool):
  first = thread_report.report()
  go_on = tf.placeholder(tf.int32)
  with tf.control_dependencies([go_on]):
    second = thread_report.report()
  with tf.Session(config=thread_report.config("p0", "p1")) as sess:
    handle = sess.partial_run_setup([first, second], [go_on], options=thread_report.on_pool(pool))
    thread_report.assert_on_pool(sess.partial_run(handle, first), f"p{pool}")
    thread_report.assert_on_pool(sess.partial_run(handle, second, {go_on: 1}), f"p{pool}")


def test_other_partial_runs_stay_on_the_sessions_threads():
  report = thread_report.report()
  with tf.Session(config=thread_report.config("p0")) as sess:
    sess.partial_run(sess.partial_run_setup(report, options=thread_report.on_pool(0)), report)
    for options in (None, tf.RunOptions()):
      handle = sess.partial_run_setup(report, options=options)
      thread_report.assert_on_session(sess.partial_run(handle, report))


def test_a_partial_run_of_another_thread_does_not_get_the_options():
  """The options belong to one call: a partial run that another thread sets up meanwhile does not get them."""
  report = thread_report.report()
  barrier = threading.Barrier(2, timeout=30)
  threads = {}

  def run(sess, name, options):
    for i in range(20):
      barrier.wait()
      handle = sess.partial_run_setup(report, options=options)
      threads[name, i] = sess.partial_run(handle, report)

  with tf.Session(config=thread_report.config("p0")) as sess:
    other = threading.Thread(target=run, args=(sess, "session", None))
    other.start()
    run(sess, "pool", thread_report.on_pool(0))
    other.join()
  for (name, _), found in threads.items():
    if name == "pool":
      thread_report.assert_on_pool(found, "p0")
    else:
      thread_report.assert_on_session(found)


def test_a_pool_that_the_session_lacks_is_named_to_the_setup():
  number = tf.constant(1)
  with tf.Session(config=thread_report.config("p0")) as sess:
    with pytest.raises(tf.errors.InvalidArgumentError, match="stage thread pool 1, but the session has 1"):
      sess.partial_run_setup(number, options=thread_report.on_pool(1))


def test_options_that_do_not_apply_are_refused():
  number = tf.constant(1)
  with tf.Session() as sess:
    with pytest.raises(ValueError, match="timeout_in_ms does not apply to partial runs, got 5"):
      sess.partial_run_setup(number, options=tf.RunOptions(timeout_in_ms=5))
    with pytest.raises(TypeError, match="options must be a tf.RunOptions, got int"):
      sess.partial_run_setup(number, options=1)
