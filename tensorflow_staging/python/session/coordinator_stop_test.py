# SPDX-License-Identifier: Apache-2.0
"""A function is called when a coordinator stops, and the coordinator waits for it."""

import threading

import tensorflow.compat.v1 as tf

from tensorflow_staging.python.session import coordinator_stop
from tensorflow_staging.python.testing import test_util


def test_the_function_is_called_once_and_joined():
  called = []
  coord = tf.train.Coordinator()
  coordinator_stop.call_at_stop(coord, lambda: called.append(threading.current_thread().name), "staging_test")
  assert "staging_test" in [thread.name for thread in threading.enumerate()]
  assert called == []
  coord.request_stop()
  coord.join(stop_grace_period_secs=test_util.WAIT_SECONDS)
  assert called == ["staging_test"]
