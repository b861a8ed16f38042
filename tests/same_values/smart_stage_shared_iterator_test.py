# SPDX-License-Identifier: Apache-2.0
"""SmartStage does not change the values of an iterator that the step also reads where no edge shows it."""

import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import control_flow
from tensorflow_staging.python.testing import smart_stage_sessions


def _branch(record, iterator):
  return tf.cond(record % 2 < 1, iterator.get_next, lambda: record)


def _branch_of_version_2(record, iterator):
  with control_flow.version(2):
    return _branch(record, iterator)


def _next_after(value, iterator):
  """Returns the iterator's next record, read after `value`; otherwise the order would be undefined."""
  with tf.control_dependencies([value]):
    return iterator.get_next()


def _loop_of_version_2(record, iterator):
  body = lambda i, total: (i + 1, total + _next_after(total, iterator))
  with control_flow.version(2):
    return tf.while_loop(lambda i, _: i < 2, body, [0, record])[1]


def _function(record, iterator):
  return tf.function(lambda value: value + _next_after(value, iterator))(record)


@pytest.mark.parametrize("read", [_branch, _branch_of_version_2, _loop_of_version_2, _function])
def test_records_are_those_without_smart_stage(read):
  found = []
  for smart_stage in (False, True):
    with tf.Graph().as_default():
      iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(12))
      record = iterator.get_next()
      other = read(record, iterator)
      target = tf.stack([record * 2 + tf.get_variable("zero", [], tf.int64, tf.zeros_initializer()), other])
      config = smart_stage_sessions.smart_stage_config() if smart_stage else None
      with tf.train.MonitoredTrainingSession(config=config, hooks=[tf.make_prefetch_hook()]) as sess:
        found.append([])
        while not sess.should_stop():
          found[-1].append(sess.run(target).tolist())
  assert len(found[0]) >= 3
  assert found[0] == found[1]


def test_a_handle_made_from_a_string_reads_the_same_iterator():
  data = tf.data.Dataset.range(12)
  iterator = tf.data.make_initializable_iterator(data)
  record = iterator.get_next() + tf.get_variable("zero", [], tf.int64, tf.zeros_initializer())
  handle = tf.placeholder(tf.string, [])
  other = tf.data.Iterator.from_string_handle(
      handle, tf.data.get_output_types(data), tf.data.get_output_shapes(data)).get_next()
  with smart_stage_sessions.smart_stage_session(iterator.initializer) as sess:
    feeds = {handle: sess.run(iterator.string_handle())}
    found = [sess.run(record), sess.run(other, feeds), sess.run(record), sess.run(other, feeds)]
  assert found == [0, 1, 2, 3]


def test_a_function_reads_through_the_string_handle():
  data = tf.data.Dataset.range(12)
  iterator = tf.data.make_one_shot_iterator(data)
  record = iterator.get_next() + tf.get_variable("zero", [], tf.int64, tf.zeros_initializer())
  read = tf.function(lambda handle: tf.data.Iterator.from_string_handle(
      handle, tf.data.get_output_types(data), tf.data.get_output_shapes(data)).get_next())
  other = read(iterator.string_handle())
  with smart_stage_sessions.smart_stage_session() as sess:
    assert [sess.run(record), sess.run(other), sess.run(record), sess.run(other)] == [0, 1, 2, 3]
