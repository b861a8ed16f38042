# SPDX-License-Identifier: Apache-2.0
"""After a preemption a monitored session creates a new session and runs the stages there."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util


class _FailOnce(tf.train.SessionRunHook):
  """Raises the error of a lost worker, once, after the first step."""

  def __init__(self, error: type[tf.errors.OpError]):
    self._error = error
    self.raised = False

  def after_run(self, run_context, run_values):
    if not self.raised:
      self.raised = True
      raise self._error(None, None, "preempted")


class _CloseOnce(tf.train.SessionRunHook):
  """Closes the buffer with an error, once and before the first step, so that the Take op raises the error."""

  def __init__(self, code: int):
    self._code = code
    self.raised = False

  def after_create_session(self, session, coord):
    if not self.raised:
      self.raised = True
      session.run("input/TensorBufferClose", {"input/error_code:0": self._code})


def _taken(failing):
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(5))
  scaffold = tf.train.Scaffold(
      local_init_op=tf.group(tf.local_variables_initializer(), iterator.initializer))
  record = tf.staged(iterator.get_next(), name="input")
  hooks = [tf.make_prefetch_hook(), failing]
  with tf.train.MonitoredTrainingSession(scaffold=scaffold, hooks=hooks) as sess:
    taken = test_util.drain(sess, record)
  assert failing.raised
  return taken


@pytest.mark.parametrize("error", [tf.errors.AbortedError, tf.errors.UnavailableError])
def test_a_hook_raises_the_error(error):
  assert _taken(_FailOnce(error)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("code", [tf.errors.ABORTED, tf.errors.UNAVAILABLE])
def test_an_op_raises_the_error(code):
  # Records that the first session produced before the error come before these, or are lost with it.
  assert _taken(_CloseOnce(code))[-5:] == [0, 1, 2, 3, 4]
