# SPDX-License-Identifier: Apache-2.0
"""A consumer that raises, or stops for longer than a record waits for room."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import stage_kinds
from tensorflow_staging.python.testing import test_util


def _initialised(config) -> tf.Session:
  sess = tf.Session(config=config)
  sess.run(tf.global_variables_initializer())
  return sess


@stage_kinds.BOTH
def test_a_step_that_fails_costs_its_own_record_only(smart_stage):
  step, config = stage_kinds.stage(test_util.dataset_record(6), smart_stage, capacity=2)
  with tf.control_dependencies([tf.assert_none_equal(step, tf.constant(2, tf.int64))]):
    step = tf.identity(step)
  with _initialised(config) as sess, tf.make_prefetch_hook().running(sess):
    taken = []
    for number in range(6):
      try:
        taken.append(sess.run(step))
      except tf.errors.InvalidArgumentError:
        assert number == 2
    assert taken == [0, 1, 3, 4, 5]
    with pytest.raises(tf.errors.OutOfRangeError):
      sess.run(step)


class _RaiseAtStep(tf.train.SessionRunHook):
  """Raises an error of Python, once."""

  def __init__(self, step: int):
    self._steps_left = step

  def after_run(self, run_context, run_values):
    self._steps_left -= 1
    if self._steps_left == 0:
      raise KeyError("mine")


@stage_kinds.BOTH
def test_a_hook_that_raises_ends_its_session_only(smart_stage):
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(20))
  step, config = stage_kinds.stage(iterator.get_next(), smart_stage, capacity=2)
  scaffold = tf.train.Scaffold(local_init_op=iterator.initializer)
  taken = []
  with pytest.raises(KeyError, match="mine"):
    hooks = [tf.make_prefetch_hook(), _RaiseAtStep(3)]
    with tf.train.MonitoredTrainingSession(scaffold=scaffold, hooks=hooks, config=config) as sess:
      while True:
        taken.append(sess.run(step))
  assert taken == [0, 1]
  test_util.assert_no_stage_thread()
  hooks = [tf.make_prefetch_hook()]
  with tf.train.MonitoredTrainingSession(scaffold=scaffold, hooks=hooks, config=config) as sess:
    assert test_util.drain(sess, step) == list(range(20))


@stage_kinds.BOTH
def test_a_consumer_that_stops_loses_only_what_is_counted_as_dropped(smart_stage):
  step, config = stage_kinds.stage(test_util.dataset_record(10**6), smart_stage, capacity=2, timeout_millis=10)
  with _initialised(config) as sess, tf.make_prefetch_hook().running(sess):
    taken = [sess.run(step)]
    test_util.wait_until(lambda: tf.staging.stats(sess)[0].dropped >= 3)
    taken += [sess.run(step) for _ in range(4)]
    stats, = tf.staging.stats(sess)
  assert taken[:3] == [0, 1, 2]  # The third was in the buffer, with the second.
  assert taken == sorted(set(taken))
  assert taken[-1] - len(taken) + 1 <= stats.dropped
  assert taken[3] >= 6
