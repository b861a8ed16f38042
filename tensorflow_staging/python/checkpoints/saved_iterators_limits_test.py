# SPDX-License-Identifier: Apache-2.0
"""What `tf.staging.save_iterators` saves of uncommon iterators, what it leaves out, and what it refuses."""

import gc
import re
import weakref

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import numbers_programs
from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util


def test_an_element_that_cannot_be_saved_is_named(tmp_path):
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(100).window(2).enumerate())
  number, dataset = iterator.get_next()
  record = tf.staged({"data": tf.data.experimental.to_variant(dataset), "number": number})
  tf.staging.save_iterators(iterator)
  tf.get_variable("v", initializer=0)
  saver = tf.train.Saver()
  with smart_stage_sessions.smart_stage_session(iterator.initializer) as sess:
    sess.run(record["number"])
    test_util.wait_until(lambda: tf.staging.stats(sess)[0].put > 1)
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match="(?s)An element that was read ahead cannot be saved: its component 1 holds a variant of type .*Dataset"):
      saver.save(sess, str(tmp_path / "model"))
    # Training goes on.
    assert sess.run(record["number"]) == 1


def test_a_record_that_cannot_be_saved_is_made_again(tmp_path):
  """The checkpoint has elements, so it does not matter what the region makes of them."""
  path = None
  for taken in (1, 2):
    with tf.Graph().as_default():
      iterator, number = numbers_programs.numbers()
      record = tf.staged({"data": tf.data.experimental.to_variant(tf.data.Dataset.range(number)), "number": number})
      tf.staging.save_iterators(iterator)
      tf.get_variable("v", initializer=0)
      saver = tf.train.Saver()
      with tf.Session() as sess:
        sess.run([iterator.initializer, tf.global_variables_initializer()])
        if path is not None:
          saver.restore(sess, path)
        with tf.make_prefetch_hook().running(sess):
          assert sess.run(record["number"]) == taken - 1
          test_util.wait_until(lambda: tf.staging.stats(sess)[0].put > 1)
          path = saver.save(sess, str(tmp_path / "model"))


def test_state_outside_the_dataset_is_an_error_unless_it_is_ignored(tmp_path):
  for policy in ("fail", "ignore"):
    with tf.Graph().as_default():
      dataset = tf.data.Dataset.range(100).map(lambda n: tf.numpy_function(lambda n: n, [n], tf.int64))
      iterator = tf.data.make_initializable_iterator(dataset)
      number = tf.staged(iterator.get_next())
      tf.staging.save_iterators(iterator, external_state_policy=policy)
      saver = tf.train.Saver()
      with smart_stage_sessions.smart_stage_session(iterator.initializer) as sess:
        assert sess.run(number) == 0
        if policy == "fail":
          with pytest.raises(tf.errors.FailedPreconditionError, match="PyFunc is stateful"):
            saver.save(sess, str(tmp_path / "model"))
        else:
          saver.restore(sess, saver.save(sess, str(tmp_path / "model")))
        assert sess.run(number) == 1


def test_tensorflows_own_saveable_keeps_the_records_too(tmp_path):
  def numbers_after(count, restore_from=None):
    with tf.Graph().as_default():
      iterator, number = numbers_programs.numbers()
      step = number + tf.get_variable("v", initializer=np.int64(0))
      tf.add_to_collection(
          tf.GraphKeys.SAVEABLE_OBJECTS, tf.data.experimental.make_saveable_from_iterator(iterator))
      saver = tf.train.Saver()
      with smart_stage_sessions.smart_stage_session(iterator.initializer, capacity=5) as sess:
        # Takes a record, too.
        assert "TensorBufferTake" in smart_stage_sessions.staged_ops(sess, step)
        if restore_from:
          saver.restore(sess, restore_from)
        numbers = [int(sess.run(step)) for _ in range(count)]
        return numbers, saver.save(sess, str(tmp_path / "model"))

  _, path = numbers_after(4)
  assert numbers_after(3, path)[0] == [5, 6, 7]


@pytest.mark.parametrize("staged", [False, True])
def test_a_restore_by_tensorflows_own_saveable_is_tensorflows(staged, tmp_path):
  """It gives the position to whichever dataset the iterator has, and an initialiser begins anew after it."""
  iterator = tf.data.Iterator.from_structure(tf.int64, [])
  first, second = (iterator.make_initializer(tf.data.Dataset.range(begin, begin + 9)) for begin in (0, 100))
  number = iterator.get_next() * 1
  if staged:
    number = tf.staged(number, capacity=2)
  tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, tf.data.experimental.make_saveable_from_iterator(iterator))
  saver = tf.train.Saver()

  def numbers(sess):
    with tf.make_prefetch_hook().running(sess):
      return [int(sess.run(number)) for _ in range(2)]

  with tf.Session() as sess:
    sess.run(first)
    assert numbers(sess) == [0, 1]
    path = saver.save(sess, str(tmp_path / "model"))
  with tf.Session() as sess:
    sess.run(first)
    saver.restore(sess, path)
    assert numbers(sess) == [2, 3]
    saver.restore(sess, path)
    sess.run(first)
    assert numbers(sess) == [0, 1]
    sess.run(second)
    saver.restore(sess, path)
    # The position of a range is its next number.
    assert numbers(sess) == [2, 3]


def test_iterators_whose_initialiser_a_restore_cannot_run(tmp_path):
  """One that needs a feed, and one that has several: they keep the restored position until the stages start."""

  def numbers_after(count, restore_from=None):
    with tf.Graph().as_default():
      stop = tf.placeholder(tf.int64, [])
      fed = tf.data.make_initializable_iterator(tf.data.Dataset.range(stop))
      several = tf.data.Iterator.from_structure(tf.int64, [])
      train = several.make_initializer(tf.data.Dataset.range(100))
      several.make_initializer(tf.data.Dataset.range(7))
      number = tf.staged(fed.get_next() + several.get_next(), capacity=3)
      tf.staging.save_iterators()
      saver = tf.train.Saver()
      with tf.Session() as sess:
        if restore_from:
          saver.restore(sess, restore_from)
        sess.run([fed.initializer, train], {stop: 100})
        with tf.make_prefetch_hook().running(sess):
          numbers = [int(sess.run(number)) for _ in range(count)]
          return numbers, saver.save(sess, str(tmp_path / "model"))

  first, path = numbers_after(4)
  assert first + numbers_after(4, path)[0] == list(range(0, 16, 2))


def test_a_graph_whose_iterators_are_saved_can_be_collected(tmp_path):
  graph = tf.Graph()
  with graph.as_default():
    iterator, number = numbers_programs.staged_numbers(capacity=3)
    tf.staging.save_iterators(iterator)
    saver = tf.train.Saver()
    with tf.Session() as sess:
      sess.run(iterator.initializer)
      with tf.make_prefetch_hook().running(sess):
        assert sess.run(number) == 0
        saver.save(sess, str(tmp_path / "model"))
  collected = weakref.ref(graph)
  del graph, iterator, number, saver, sess
  gc.collect()
  assert collected() is None


def test_what_a_generator_yields_is_left_out(tmp_path):
  fed = tf.placeholder(tf.int64, [])
  generator = dict(feed_list=[fed], feed_generator=lambda: ([value] for value in range(100)))
  tf.staged(fed, **generator)
  with pytest.raises(ValueError, match="what a feed_generator yields cannot be saved"):
    tf.staging.save_iterators()
  iterator, number = numbers_programs.numbers()
  record = tf.staged([number, fed], **generator)
  tf.staging.save_iterators()
  tf.get_variable("v", initializer=0)
  saver = tf.train.Saver()
  with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), iterator.initializer])
    # As a monitored session does, it saves before the stages start.
    saver.save(sess, str(tmp_path / "start"))
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(record) == [0, 0]
      path = saver.save(sess, str(tmp_path / "model"))
      sess.run(record)
      saver.restore(sess, path)
      assert sess.run(record)[0] == 1


def test_iterators_of_two_imports_keep_their_own_positions(tmp_path):
  with tf.name_scope("model"):
    # A restore holds the position of an iterator whose initialiser needs feeds.
    count = tf.placeholder(tf.int64, [], name="count")
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(count))
    number = tf.identity(iterator.get_next(), name="number")
    tf.staging.save_iterators(iterator)
    saver = tf.train.Saver()
  tf.staging.save_iterators(numbers_programs.numbers()[0])
  paths = []
  with tf.Session() as sess:
    sess.run(iterator.initializer, {count: 100})
    for steps in (2, 3):
      for _ in range(steps):
        sess.run(number)
      paths.append(saver.save(sess, str(tmp_path / "model"), steps, write_meta_graph=False))
  definition = tf.train.export_meta_graph(export_scope="model")
  with tf.Graph().as_default():
    scopes = ("first", "second")
    for scope in scopes:
      tf.train.import_meta_graph(definition, import_scope=scope)
    with tf.Session() as sess:
      for scope, path in zip(scopes, paths):
        sess.run(f"{scope}/{iterator.initializer.name.partition('/')[2]}", {f"{scope}/count:0": 100})
        sess.run(f"{scope}/save/restore_all", {f"{scope}/save/Const:0": path})
      with tf.make_prefetch_hook().running(sess):
        assert sess.run([f"{scope}/number:0" for scope in scopes]) == [2, 5]


def test_wrong_arguments_are_refused():
  with pytest.raises(ValueError, match="has no iterator"):
    tf.staging.save_iterators()
  iterator, _ = numbers_programs.numbers()
  with pytest.raises(TypeError, match="takes iterators.*got 3 of type int"):
    tf.staging.save_iterators(3)
  with pytest.raises(ValueError, match=re.escape("['fail', 'ignore', 'warn'], got 'never'")):
    tf.staging.save_iterators(iterator, external_state_policy="never")
  with tf.Graph().as_default(), pytest.raises(ValueError, match="belongs to another graph"):
    tf.staging.save_iterators(iterator)
  tf.staging.save_iterators(iterator)
  with pytest.raises(ValueError, match="is saved already, with external_state_policy='fail', so it cannot be 'warn'"):
    tf.staging.save_iterators(iterator, external_state_policy="warn")
  tf.staging.save_iterators()
  # Without arguments, the policy is for the iterators that are not saved yet.
  tf.staging.save_iterators(external_state_policy="ignore")
  assert len(tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS)) == 1
