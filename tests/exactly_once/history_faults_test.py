# SPDX-License-Identifier: Apache-2.0
"""What random histories (`histories_test.py`) and `soak.py` have found, each as a short program."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import control_flow
from tensorflow_staging.python.testing import test_util


def _saver():
  tf.get_variable("v", initializer=np.int64(0))
  tf.staging.save_iterators()
  return tf.train.Saver()


def _initialiser_elsewhere(kind, iterator, dataset, name):
  """Returns a tensor that gives `iterator` a dataset, in a branch or a function."""
  def initialise():
    with tf.control_dependencies([iterator.make_initializer(dataset, name=name)]):
      return tf.constant(0)

  if kind == "function":
    return tf.function(initialise)()
  with control_flow.version(1 if kind == "branch of version 1" else 2):
    return tf.cond(tf.placeholder_with_default(True, []), initialise, lambda: tf.constant(1))


@pytest.mark.parametrize("kind", ["branch of version 1", "branch of version 2", "function"])
def test_a_restore_does_not_run_one_of_two_initialisers(kind, tmp_path):
  """An initialiser that is in a branch or a function counts, too."""
  iterator = tf.data.Iterator.from_structure(tf.int64, [])
  iterator.make_initializer(tf.data.Dataset.range(100, 110))
  second = _initialiser_elsewhere(kind, iterator, tf.data.Dataset.range(200, 210), "second")
  number = iterator.get_next()
  saver = _saver()
  with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), second])
    assert [sess.run(number) for _ in range(2)] == [200, 201]
    saver.restore(sess, saver.save(sess, str(tmp_path / "model")))
    assert sess.run(number) == 202


def test_an_initialiser_in_a_branch_is_another_one(tmp_path):
  iterator = tf.data.Iterator.from_structure(tf.int64, [])
  first = iterator.make_initializer(tf.data.Dataset.range(100, 110))
  second = _initialiser_elsewhere("branch of version 1", iterator, tf.data.Dataset.range(200, 210), None)
  number = iterator.get_next()
  saver = _saver()
  with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), first])
    assert [sess.run(number) for _ in range(2)] == [100, 101]
    saver.restore(sess, saver.save(sess, str(tmp_path / "model")))
    sess.run(second)
    assert sess.run(number) == 200


def test_a_step_before_the_initialiser_of_a_restored_position(tmp_path):
  stop = tf.placeholder(tf.int64, [])
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(stop))
  number = iterator.get_next()
  saver = _saver()
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(iterator.initializer, {stop: 10})
    assert [sess.run(number) for _ in range(2)] == [0, 1]
    path = saver.save(sess, str(tmp_path / "model"))
  with tf.Session() as sess:
    saver.restore(sess, path)
    with pytest.raises(tf.errors.FailedPreconditionError):
      sess.run(number)
    sess.run(iterator.initializer, {stop: 10})
    assert sess.run(number) == 2


def test_other_data_do_not_get_a_position_that_has_been_used(tmp_path):
  start = tf.placeholder(tf.int64, [])
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(start, start + 10))
  number = tf.staged(iterator.get_next() + 0, capacity=2)
  saver = _saver()
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    sess.run([tf.global_variables_initializer(), iterator.initializer], {start: 0})
    assert sess.run(number) == 0
    path = saver.save(sess, str(tmp_path / "model"))
  with tf.Session() as sess:
    saver.restore(sess, path)
    # The same data may be given twice.
    for _ in range(2):
      sess.run(iterator.initializer, {start: 0})
    sess.run(iterator.initializer, {start: 100})
    with tf.make_prefetch_hook().running(sess):
      assert [sess.run(number) for _ in range(10)] == list(range(100, 110))


@pytest.mark.parametrize("stages", [1, 2])
def test_a_second_restore_of_the_last_records(stages, tmp_path):
  def session(restored_from):
    """Returns the first number of a session that goes on from a checkpoint, and its own checkpoint before that."""
    with tf.Graph().as_default():
      iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(4))
      number = iterator.get_next()
      for _ in range(stages):
        number = tf.staged(number + 1)
      saver = _saver()
      with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), iterator.initializer])
        if restored_from:
          saver.restore(sess, restored_from)
        with tf.make_prefetch_hook().running(sess):
          path = saver.save(sess, str(tmp_path / "model"))
          if not restored_from:
            sess.run(number)
            test_util.wait_until(
                lambda: sum(stage.records + stage.waiting_puts for stage in tf.staging.stats(sess)) >= stages + 1)
            path = saver.save(sess, str(tmp_path / "model"))
          return sess.run(number) - stages, path

  first, path = session(None)
  for _ in range(3):
    number, path = session(path)
    assert number == first


def test_an_evaluation_by_handle_beside_a_fetch_of_the_label(tmp_path):
  """In a process of its own, which it aborts."""
  assert test_util.run_program("""
      import tensorflow as tf

      def pairs(begin):
        dataset = tf.data.Dataset.range(begin, begin + 9).map(lambda number: (number, number * 10))
        return tf.data.make_one_shot_iterator(dataset)

      handle = tf.placeholder(tf.string, [])
      train, test = pairs(0), pairs(100)
      number, label = tf.data.Iterator.from_string_handle(handle, (tf.int64, tf.int64), ([], [])).get_next()
      staged = tf.staged(number + 1, feed_dict={handle: train.string_handle()})
      with tf.Session() as sess:
        test_handle = sess.run(test.string_handle())
        with tf.make_prefetch_hook().running(sess):
          print(*sess.run([staged, label]))
          print(sess.run(number, {handle: test_handle}))
          print(*sess.run([staged, label]))
      """, tmp_path) == "1 0\n100\n2 10\n"
