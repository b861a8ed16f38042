# SPDX-License-Identifier: Apache-2.0
"""A function is called when a coordinator stops, and the coordinator waits for it."""

import threading

import tensorflow.compat.v1 as tf

from tensorflow_staging.python.session import coordinator_stop
from tensorflow_staging.python.testing import test_util


def _call_at_stop(coord, called, is_over):
  coordinator_stop.call_at_stop(
      coord, lambda: called.append(threading.current_thread().name), "staging_test", is_over)


def _is_running():
  return "staging_test" in [thread.name for thread in threading.enumerate()]


def test_the_function_is_called_once_and_joined():
  called = []
  coord = tf.train.Coordinator()
  _call_at_stop(coord, called, is_over=lambda: False)
  assert _is_running()
  assert called == []
  coord.request_stop()
  coord.join(stop_grace_period_secs=test_util.WAIT_SECONDS)
  assert called == ["staging_test"]


def test_the_thread_ends_once_there_is_nothing_to_stop():
  called = []
  over = threading.Event()
  coord = tf.train.Coordinator()
  _call_at_stop(coord, called, over.is_set)
  assert _is_running()
  over.set()
  test_util.wait_until(lambda: not _is_running())
  coord.request_stop()
  coord.join(stop_grace_period_secs=test_util.WAIT_SECONDS)
  assert called == []
