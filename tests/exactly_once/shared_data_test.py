# SPDX-License-Identifier: Apache-2.0
"""Sessions of one server share an iterator: each has a stage of its own, and each record arrives in one of them."""

import contextlib
import threading

import tensorflow as tf

from tensorflow_staging.python.testing import stage_kinds
from tensorflow_staging.python.testing import test_util

_SESSIONS = 4
_RECORDS = 1000


def _session(target, smart_stage):
  """Returns a session with a graph of its own, its step, and the initialiser of the iterator that all share."""
  with tf.Graph().as_default():
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(_RECORDS), shared_name="shared_data")
    step, config = stage_kinds.stage(iterator.get_next(), smart_stage, capacity=4, num_threads=2)
    sess = tf.Session(target, config=config)
    sess.run(tf.global_variables_initializer())
    return sess, step, iterator.initializer


@stage_kinds.BOTH
def test_each_record_arrives_in_one_session(smart_stage):
  server = tf.train.Server.create_local_server()
  with contextlib.ExitStack() as stack:
    sessions = [_session(server.target, smart_stage) for _ in range(_SESSIONS)]
    for sess, _, _ in sessions:
      stack.enter_context(contextlib.closing(sess))
    sessions[0][0].run(sessions[0][2])
    taken = [[] for _ in sessions]

    def train(sess, step, numbers):
      with tf.make_prefetch_hook().running(sess):
        assert len(tf.staging.stats(sess)) == 1
        numbers += test_util.drain(sess, step)

    threads = [
        threading.Thread(target=train, args=[sess, step, numbers])
        for (sess, step, _), numbers in zip(sessions, taken)
    ]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    assert sorted(sum(taken, [])) == list(range(_RECORDS))
