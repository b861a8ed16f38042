# SPDX-License-Identifier: Apache-2.0
"""Python code that fills one array anew for each record changes no record that waits."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util

_RECORDS = 8
# TensorFlow shares the memory of an array that Python returns if its address is a multiple of this.
_ALIGNMENT = 64


def _shared_array() -> np.ndarray:
  """Returns an array whose memory TensorFlow shares."""
  size = 4 * np.dtype(np.int64).itemsize
  memory = np.zeros(size + _ALIGNMENT, np.uint8)
  start = -memory.ctypes.data % _ALIGNMENT
  return memory[start:start + size].view(np.int64)


class _Reader:
  """Python code that returns the same array for each record, filled with the record's number."""

  def __init__(self):
    self._array = _shared_array()
    # Set when the stage has read all records, so that all before the last one wait.
    self.has_read_all = threading.Event()

  def __call__(self, number: np.int64) -> np.ndarray:
    self._array[:] = number
    if number == _RECORDS - 1:
      self.has_read_all.set()
    return self._array


@pytest.mark.parametrize("in_dataset", [False, True], ids=["in the graph", "in the dataset"])
@pytest.mark.parametrize("smart_stage", [False, True], ids=["staged", "SmartStage"])
def test_a_python_function(in_dataset, smart_stage):
  reader = _Reader()

  def read(number):
    return tf.ensure_shape(tf.numpy_function(reader, [number], tf.int64), [4])

  dataset = tf.data.Dataset.range(_RECORDS)
  if in_dataset:
    # tf.data by itself would read the next record while the stage computes with this one.
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    record = tf.data.make_one_shot_iterator(dataset.map(read).with_options(options)).get_next()
  else:
    record = read(tf.data.make_one_shot_iterator(dataset).get_next())
  config = smart_stage_sessions.smart_stage_config(capacity=_RECORDS) if smart_stage else None
  if not smart_stage:
    record = tf.staged(record, capacity=_RECORDS)
  scale = tf.get_variable("scale", [], tf.int64, initializer=tf.ones_initializer())
  result = (record * scale)[0]
  with tf.Session(config=config) as sess:
    sess.run(scale.initializer)
    with tf.make_prefetch_hook().running(sess):
      assert reader.has_read_all.wait(test_util.WAIT_SECONDS)
      assert test_util.drain(sess, result) == list(range(_RECORDS))


def test_a_generator():
  reader = _Reader()
  number = tf.placeholder(tf.int64, [4])
  record = tf.staged(
      number, capacity=_RECORDS, feed_list=[number],
      feed_generator=lambda: ([reader(np.int64(n))] for n in range(_RECORDS)))
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert reader.has_read_all.wait(test_util.WAIT_SECONDS)
    assert [value[0] for value in test_util.drain(sess, record)] == list(range(_RECORDS))


def test_a_generator_of_several_threads():
  reader = _Reader()
  number = tf.placeholder(tf.int64, [4])

  def wait():
    assert reader.has_read_all.wait(test_util.WAIT_SECONDS)

  # All threads have a record of the generator before any of them computes with its own.
  with tf.control_dependencies([number, tf.numpy_function(wait, [], [])]):
    doubled = number * 2
  record = tf.staged(
      doubled, capacity=_RECORDS, num_threads=_RECORDS, feed_list=[number],
      feed_generator=lambda: ([reader(np.int64(n))] for n in range(_RECORDS)))
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    taken = [value[0] for value in test_util.drain(sess, record)]
  assert sorted(taken) == [2 * n for n in range(_RECORDS)]
