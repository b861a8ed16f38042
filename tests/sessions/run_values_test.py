# SPDX-License-Identifier: Apache-2.0
"""A monitored session gives each hook the results that it asked for, and one object to all that asked for none."""

import tensorflow.compat.v1 as tf


class _Recorder(tf.train.SessionRunHook):
  """Keeps what each step gave it."""

  def __init__(self, asks_for=None):
    self._request = None if asks_for is None else tf.train.SessionRunArgs(asks_for)
    self.values = []

  def before_run(self, run_context):
    return self._request

  def after_run(self, run_context, run_values):
    self.values.append(run_values)


def test_hooks_without_results_share_an_object():
  one, two = tf.constant(1), tf.constant(2)
  three = one + two
  first, none, second, none_too = hooks = [_Recorder(one), _Recorder(), _Recorder(two), _Recorder()]
  metadata = tf.RunMetadata()
  with tf.train.MonitoredSession(hooks=hooks) as sess:
    for _ in range(2):
      assert sess.run(three, run_metadata=metadata) == 3
  assert [values.results for values in first.values] == [1, 1]
  assert [values.results for values in second.values] == [2, 2]
  assert [values.results for values in none.values] == [None, None]
  for step in range(2):
    assert none_too.values[step] is none.values[step]
    for hook in hooks:
      assert hook.values[step].run_metadata is metadata
      assert hook.values[step].options is none.values[step].options
  assert none.values[0] is not none.values[1]
