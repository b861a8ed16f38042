# SPDX-License-Identifier: Apache-2.0
import pathlib

import numpy as np
import stage_pools
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

tf1 = tf.compat.v1


def _ways_to_run(sess: tf1.Session, fetch: tf.Tensor) -> list[np.ndarray]:
  """Fetches a tensor in each way in which a session can run, and returns the values."""
  options = config_pb2.CallableOptions(fetch=[fetch.name])
  return [
      sess.run(fetch),
      sess.run(fetch, options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE), run_metadata=tf1.RunMetadata()),
      sess.make_callable(fetch)(),
      sess._make_callable_from_options(options)()[0],
      sess.partial_run(sess.partial_run_setup(fetch), fetch),
  ]


def _thread_of_step() -> tf.Tensor:
  """Returns a tensor that yields the kernel's name of the thread that computes it."""
  def name():
    return np.bytes_(pathlib.Path("/proc/thread-self/comm").read_text().strip())

  return tf.numpy_function(name, [], tf.string)


def test_every_way_to_run_uses_the_pool():
  with tf.Graph().as_default():
    thread = _thread_of_step()
    with stage_pools.everywhere(), tf1.Session() as sess:
      assert _ways_to_run(sess, thread) == [b"upstream_tests_"] * 5


def test_a_run_that_chooses_its_threads_keeps_them():
  with tf.Graph().as_default():
    thread = _thread_of_step()
    config = tf1.ConfigProto()
    config.session_inter_op_thread_pool.add()
    config.session_inter_op_thread_pool.add(num_threads=1)
    with stage_pools.everywhere(), tf1.Session(config=config) as sess:
      assert sess.run(thread, options=tf1.RunOptions(inter_op_thread_pool=1)) != b"upstream_tests_"
      assert sess.run(thread) == b"upstream_tests_"


def test_distributed_sessions_have_pools_but_for_partial_runs_and_later_sessions_have_none():
  server = tf.distribute.Server.create_local_server()
  with tf.Graph().as_default():
    thread = _thread_of_step()
    with stage_pools.everywhere(), tf1.Session(server.target) as sess:
      *whole, partial = _ways_to_run(sess, thread)
      assert whole == [b"upstream_tests_"] * 4
      assert partial != b"upstream_tests_"
    with tf1.Session() as sess:
      assert b"upstream_tests_" not in _ways_to_run(sess, thread)
