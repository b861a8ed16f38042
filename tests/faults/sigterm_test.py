# SPDX-License-Identifier: Apache-2.0
"""SIGTERM ends a program with stages within seconds: at once by default, or as its own handler says."""

import signal
import sys
import time

import pytest

from tensorflow_staging.python.testing import test_util

_LIMIT_SECONDS = 5

_PROGRAM = """
import signal
import sys

import tensorflow as tf

from tensorflow_staging.python.session import all_sessions

{handler}
number = tf.data.make_one_shot_iterator(tf.data.Dataset.range(10**9)).get_next()
config = tf.ConfigProto()
if {smart_stage}:
  number *= 1
  config.graph_options.optimizer_options.do_smart_stage = True
else:
  number = tf.staged(number, capacity=2, num_threads=2)
step = number + tf.get_variable("zero", initializer=tf.zeros([], tf.int64), use_resource=True)
try:
  with tf.train.MonitoredTrainingSession(config=config, hooks=[tf.make_prefetch_hook()]) as sess:
    for i in range(10**9):
      sess.run(step)
      if i == 10:
        print("trains", flush=True)
finally:
  print("closed", all_sessions._any_running(), flush=True)
"""
_ENDS = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))"


@pytest.mark.parametrize(
    "smart_stage,handler,status,output",
    [(False, "", -signal.SIGTERM, ""), (True, _ENDS, 7, "closed False\n")],
    ids=["default with tf.staged", "handler with SmartStage"])
def test_sigterm_while_training(smart_stage, handler, status, output, tmp_path):
  program = tmp_path / "program.py"
  program.write_text(_PROGRAM.format(handler=handler, smart_stage=smart_stage))
  with test_util.start([sys.executable, program.name], tmp_path, TF_API_VERSION="1") as process:
    try:
      assert process.stdout.readline() == "trains\n", process.stderr.read()
      began = time.monotonic()
      process.terminate()
      assert process.communicate(timeout=_LIMIT_SECONDS)[0] == output
      assert time.monotonic() - began < _LIMIT_SECONDS
      assert process.returncode == status
    finally:
      process.kill()
