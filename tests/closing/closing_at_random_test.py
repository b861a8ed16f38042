# SPDX-License-Identifier: Apache-2.0
"""Sessions with stages of many kinds are closed at random moments, also while steps run, and nothing hangs.

STAGING_CLOSES says how many sessions, 60 by default.
"""

import os

import pytest

from tensorflow_staging.python.testing import test_util

# So many that they take less than `test_util.PROGRAM_SECONDS` on a busy machine, where a session takes 0.1 s.
_CLOSES_PER_PROGRAM = 500
_CLOSES = int(os.environ.get("STAGING_CLOSES", "60"))

_PROGRAM = """
    import contextlib
    import faulthandler
    import random
    import threading
    import time

    import tensorflow as tf

    faulthandler.dump_traceback_later(120)
    target = tf.train.Server.create_local_server().target if {on_server} else ""
    choices = random.Random({seed})


    def source():
      if choices.random() < 0.25:
        return tf.train.input_producer(tf.constant([1, 2, 3]), capacity=choices.choice([1, 32])).dequeue()
      dataset = tf.data.Dataset.range(choices.choice([1, 50, 10**9, 10**9]))
      if choices.random() < 0.5:
        dataset = dataset.map(lambda number: number + 1, num_parallel_calls=2).prefetch(2)
      return tf.data.make_one_shot_iterator(dataset).get_next()


    def staged(record, name):
      return tf.staged(
          record, capacity=choices.choice([1, 2, 5, 40, 10**6]), num_threads=choices.choice([1, 2, 4]), name=name)


    def stages(name):
      record = staged(source(), f"{{name}}_first")
      if choices.random() < 0.25:
        record = staged(choices.choice([tf.identity, tf.negative])(record), f"{{name}}_second")
      return record


    def take_until_closed(sess, records):
      with contextlib.suppress(tf.errors.OpError, RuntimeError):
        while True:
          sess.run(records)


    # A server keeps the buffer of a stage while any session has it, so each session has its own.
    for i in range({closes}):
      with tf.Graph().as_default():
        records = [stages(f"session_{{i}}_{{k}}") for k in range(choices.choice([1, 2, 4]))]
        sess = tf.Session(target)
        hook = tf.make_prefetch_hook()
        coordinator = tf.train.Coordinator()
        feeders = tf.train.start_queue_runners(sess, coordinator)
        hook.after_create_session(sess, None)
        with contextlib.suppress(tf.errors.OutOfRangeError):
          for _ in range(choices.choice([0, 1, 3, 60])):
            sess.run(records)
        takers = [
            threading.Thread(target=take_until_closed, args=[sess, records]) for _ in range(choices.choice([0, 1]))]
        for taker in takers:
          taker.start()
        # The moment of the close.
        time.sleep(choices.choice([0, 0.003, 0.006, 0.012]))
        ends = [sess.close, lambda: hook.end(sess)]
        for end in ends if choices.random() < 0.7 else reversed(ends):
          end()
        coordinator.request_stop()
        for thread in feeders + takers:
          thread.join()
    print("closed")
    """


@pytest.mark.parametrize("on_server", [False, True], ids=["local", "server"])
@pytest.mark.parametrize("first", range(0, _CLOSES, _CLOSES_PER_PROGRAM))
def test_nothing_hangs(tmp_path, on_server, first):
  closes = min(_CLOSES_PER_PROGRAM, _CLOSES - first)
  program = _PROGRAM.format(on_server=on_server, seed=first, closes=closes)
  assert test_util.run_program(program, tmp_path) == "closed\n"
