# SPDX-License-Identifier: Apache-2.0
"""ConfigProto.operation_timeout_in_ms limits steps only; a region that runs ahead may wait longer."""

import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import smart_stage_sessions

_TRIES = 200  # Each lasts up to 100 ms.


def _take(sess: tf.Session, fetch: tf.Tensor):
  for _ in range(_TRIES):
    try:
      return sess.run(fetch)
    except tf.errors.DeadlineExceededError:
      pass
  raise AssertionError("no record came")


@pytest.mark.parametrize("smart_stage", [False, True])
def test_a_step_that_times_out_does_not_end_the_stage(smart_stage):
  may_go_on = threading.Event()

  def wait(value):
    may_go_on.wait(20)
    return value

  record = tf.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next()
  value = tf.numpy_function(wait, [record], tf.int64)
  config = smart_stage_sessions.smart_stage_config() if smart_stage else tf.ConfigProto()
  if not smart_stage:
    value = tf.staged(value)
  config.operation_timeout_in_ms = 100
  result = value + tf.get_variable("variable", initializer=np.int64(10))
  with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      # Several steps, so that the stage certainly waits for longer than the timeout.
      for _ in range(3):
        with pytest.raises(tf.errors.DeadlineExceededError):
          sess.run(result)
      may_go_on.set()
      assert [_take(sess, result) for _ in range(3)] == [10, 11, 12]
