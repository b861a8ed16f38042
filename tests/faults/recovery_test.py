# SPDX-License-Identifier: Apache-2.0
"""A monitored session recovers from the errors of a lost worker, raised by a hook or by a stage."""

import gc
import threading

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import faulty_source
from tensorflow_staging.python.testing import stage_kinds
from tensorflow_staging.python.testing import test_util


class _FailOnce(tf.train.SessionRunHook):
  """Raises an error, once, after the second step."""

  def __init__(self, error: type[tf.errors.OpError]):
    self._error = error
    self.steps = 0

  def after_run(self, run_context, run_values):
    self.steps += 1
    if self.steps == 2:
      raise self._error(None, None, "preempted")


@pytest.mark.parametrize("error", [tf.errors.AbortedError, tf.errors.UnavailableError])
def test_a_hook_raises_the_error(error):
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(5))
  step, config = stage_kinds.stage(iterator.get_next(), smart_stage=True, capacity=2)
  failing = _FailOnce(error)
  scaffold = tf.train.Scaffold(local_init_op=iterator.initializer)
  hooks = [tf.make_prefetch_hook(), failing]
  with tf.train.MonitoredTrainingSession(scaffold=scaffold, hooks=hooks, config=config) as sess:
    # The error takes the place of the second step's result.
    assert test_util.drain(sess, step) == [0, 0, 1, 2, 3, 4]
  assert failing.steps == 7


class _FailsToBegin(tf.train.SessionRunHook):

  def __init__(self, error: Exception):
    self._error = error

  def after_create_session(self, session, coord):
    raise self._error


@pytest.mark.parametrize("hook", [tf.make_prefetch_hook, lambda: tf.staging.StatsHook(every_n_secs=0.01)])
def test_a_hook_fails_once_the_session_exists(hook):
  tf.staged(test_util.dataset_record(5))
  before = threading.enumerate()
  for _ in range(3):
    with pytest.raises(ZeroDivisionError):
      with tf.train.MonitoredTrainingSession(hooks=[hook(), _FailsToBegin(ZeroDivisionError())]):
        pass
  # The session is in the exception's traceback.
  gc.collect()
  left = lambda: [thread for thread in threading.enumerate() if thread not in before]
  test_util.wait_until(lambda: not left())


class _Feed(tf.train.SessionRunHook):
  """Puts records into the source of each new session; the first one fails after its records."""

  def __init__(self, source: faulty_source.FaultySource, code: int):
    self._source = source
    self._code = code
    self.sessions = 0

  def after_create_session(self, session, coord):
    self.sessions += 1
    self._source.put(session, 0, 1, 2)
    self._source.fail(session, self._code if self.sessions == 1 else tf.errors.DATA_LOSS)


@stage_kinds.BOTH
def test_the_stage_raises_an_aborted_error(smart_stage):
  source = faulty_source.FaultySource()
  step, config = stage_kinds.stage(source.iterator.get_next(), smart_stage, capacity=2)
  scaffold = tf.train.Scaffold(local_init_op=source.iterator.initializer)
  feed = _Feed(source, tf.errors.ABORTED)
  taken = []
  with pytest.raises(tf.errors.DataLossError):
    with tf.train.MonitoredTrainingSession(
        scaffold=scaffold, hooks=[tf.make_prefetch_hook(), feed], config=config) as sess:
      while True:
        taken.append(sess.run(step))
  assert taken == [0, 1, 2, 0, 1, 2]
  assert feed.sessions == 2
