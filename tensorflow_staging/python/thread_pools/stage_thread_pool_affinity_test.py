# SPDX-License-Identifier: Apache-2.0
"""A stage thread pool can be pinned to cores."""

import os

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import thread_report

_CORES = sorted(os.sched_getaffinity(0))


@pytest.mark.parametrize("core", {_CORES[0], _CORES[-1]})
def test_a_pinned_pool_runs_on_its_core_and_the_session_keeps_all(core):
  report = thread_report.report()
  with tf.Session(config=thread_report.config("pinned", cores=(core,))) as sess:
    for _ in range(20):
      threads = sess.run(report, options=thread_report.on_pool(0))
      thread_report.assert_on_pool(threads, "pinned")
      assert list(threads.cores) == [core, core]
    pinned = thread_report.assert_pool_threads("pinned", 2)
    assert all(os.sched_getaffinity(thread) == {core} for thread in pinned)
    thread_report.assert_on_session(sess.run(report))
  assert os.sched_getaffinity(0) == set(_CORES)


def test_a_pool_is_not_pinned_by_default():
  with tf.Session(config=thread_report.config("free")):
    found = thread_report.assert_pool_threads("free", 2)
    assert all(os.sched_getaffinity(thread) == set(_CORES) for thread in found)


def test_a_stage_runs_on_its_core():
  staged = tf.staged(thread_report.report()._asdict(), use_stage_subgraph_thread_pool=True)
  config = thread_report.config("pinned", cores=(_CORES[-1],))
  with tf.Session(config=config) as sess, tf.make_prefetch_hook().running(sess):
    assert list(sess.run(staged)["cores"]) == [_CORES[-1]] * 2


@pytest.mark.parametrize("core", [-1, 1023, 100_000])
def test_a_core_that_the_process_may_not_use_fails_when_the_session_is_made(core):
  message = rf"pool\[0\]\.cpu_affinity has {core}; this process may use the cores .*{_CORES[-1]}"
  with pytest.raises(tf.errors.InvalidArgumentError, match=message):
    tf.Session(config=thread_report.config("bad", cores=(_CORES[0], core)))
  assert not thread_report.pool_threads("bad")
