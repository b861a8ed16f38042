# SPDX-License-Identifier: Apache-2.0
"""A step reports the error of the worker that failed, not that of another, which was cancelled because of it.

Of several causes, TensorFlow reports the one whose text comes last in the alphabet. So ABORTED, which a parameter
server that was started again says, and from which a monitored session recovers, was lost to CANCELLED.
"""

import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import loopback

_STEPS = 20


@pytest.fixture(scope="module")
def master():
  """The master of two workers in this process: the first is called directly, the second by gRPC."""
  addresses = [f"127.0.0.1:{port}" for port in loopback.free_ports(2)]
  spec = tf.train.ClusterSpec({"worker": addresses})
  return [tf.train.Server(spec, "worker", index) for index in range(2)][0].target


@pytest.mark.parametrize("failing", [0, 1])
def test_a_step_reports_the_worker_that_failed(master, failing):
  with tf.device(f"/job:worker/task:{failing}"):
    # ALREADY_EXISTS comes before CANCELLED in the alphabet, as ABORTED does.
    first = tf.raw_ops.TemporaryVariable(shape=[], dtype=tf.float32, var_name="twice")
    with tf.control_dependencies([first]):
      second = tf.raw_ops.TemporaryVariable(shape=[], dtype=tf.float32, var_name="twice")
  with tf.device(f"/job:worker/task:{1 - failing}"):
    waits = tf.FIFOQueue(1, tf.float32, shapes=[[]]).dequeue()
  with tf.Session(master) as sess:
    for _ in range(_STEPS):
      with pytest.raises(tf.errors.AlreadyExistsError):
        sess.run([second.op, waits.op])
