# SPDX-License-Identifier: Apache-2.0
"""SIGINT ends a program with stages within seconds, whoever waits."""

import pytest

from tensorflow_staging.python import staging_testing

_PROGRAM = """
      import os
      import signal
      import threading
      import time

      import tensorflow as tf

      def interrupt():
        global interrupted
        interrupted = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

      {stage}
      try:
        with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
          {loop}
      except KeyboardInterrupt:
        print("interrupted", time.monotonic() - interrupted < 5)
      """

_PRODUCER_WAITS = {
    "stage": "record = tf.staged(tf.constant(1), num_threads=2)",
    "loop": "sess.run(record); interrupt(); threading.Event().wait()",
}
_CONSUMER_WAITS = {
    "stage": "record = tf.staged(tf.FIFOQueue(1, [tf.int64]).dequeue())",
    "loop": """threading.Thread(target=lambda: sess.raw_session().run(record), daemon=True).start()
          interrupt()
          threading.Event().wait()""",
}


@pytest.mark.parametrize(
    "parts", [_PRODUCER_WAITS, _CONSUMER_WAITS], ids=["producer", "consumer"])
def test_sigint(tmp_path, parts):
  output = staging_testing.run_program(_PROGRAM.format(**parts), tmp_path)
  assert output == "interrupted True\n"
