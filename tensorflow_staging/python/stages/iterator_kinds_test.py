# SPDX-License-Identifier: Apache-2.0
"""Every kind of input that TensorFlow provides can be staged."""

import tensorflow as tf

from tensorflow_staging.python.testing import test_util


def _drain(sess, record):
  with tf.make_prefetch_hook().running(sess):
    return test_util.drain(sess, record)


def test_an_iterator_from_a_structure_switches_datasets():
  train, test = tf.data.Dataset.range(4), tf.data.Dataset.range(10, 12)
  iterator = tf.data.Iterator.from_structure(tf.int64, tf.TensorShape([]))
  begin_train, begin_test = iterator.make_initializer(train), iterator.make_initializer(test)
  record = tf.staged(iterator.get_next(), capacity=2)
  with tf.Session() as sess:
    for _ in range(2):
      sess.run(begin_train)
      assert _drain(sess, record) == [0, 1, 2, 3]
      sess.run(begin_test)
      assert _drain(sess, record) == [10, 11]


def test_a_feed_chooses_the_iterator_by_its_string_handle():
  handle = tf.placeholder(tf.string, [])
  chosen = tf.data.make_initializable_iterator(tf.data.Dataset.range(3))
  iterator = tf.data.Iterator.from_string_handle(handle, tf.int64, tf.TensorShape([]))
  record = tf.staged(iterator.get_next(), feed_dict={handle: chosen.string_handle()})
  with tf.Session() as sess:
    for _ in range(2):
      sess.run(chosen.initializer)
      assert _drain(sess, record) == [0, 1, 2]


def test_another_get_next_gets_the_next_element():
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(12))
  record, other = tf.staged(iterator.get_next(), capacity=2), iterator.get_next()
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    test_util.wait_until(lambda: tf.staging.stats(sess)[0].records == 2)
    found = [sess.run(other) for _ in range(3)] + test_util.drain(sess, record)
  assert found == list(range(12))


def test_a_nested_structure_of_a_batched_dataset():
  dataset = tf.data.Dataset.range(6).map(lambda n: {"n": n, "text": tf.as_string(n)}).batch(4)
  record = tf.staged(tf.data.make_one_shot_iterator(dataset).get_next())
  with tf.Session() as sess:
    first, second = _drain(sess, record)
  assert first["n"].tolist() == [0, 1, 2, 3]
  assert second["text"].tolist() == [b"4", b"5"]


def test_a_queue_pipeline_with_its_own_runners():
  number, = tf.train.slice_input_producer([tf.range(10)], num_epochs=1, shuffle=False)
  batch = tf.train.batch([number], batch_size=5, capacity=20)
  record = tf.staged(batch, capacity=2)
  with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
    batches = test_util.drain(sess, record)
  assert [list(batch) for batch in batches] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_a_py_function():
  source = test_util.Source(end=3)
  number = tf.py_function(source._next, [], tf.int64)
  with tf.Session() as sess:
    assert _drain(sess, tf.staged(number)) == [0, 1, 2]
