# SPDX-License-Identifier: Apache-2.0
"""Errors in a `feed_generator` reach the step; the call refuses wrong arguments."""

import re

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util


def _fails_after_one(error):
  def numbers():
    yield [7]
    raise error
  return numbers


def _staged_number(feed_generator, **options):
  number = tf.placeholder(tf.int64, [])
  return tf.staged(number + 0, feed_list=[number], feed_generator=feed_generator, **options)


@pytest.mark.parametrize(
    "error,raised",
    [(KeyError("no such column"), tf.errors.UnknownError),
     (ValueError("bad line"), tf.errors.InvalidArgumentError),
     (MemoryError("too much"), tf.errors.ResourceExhaustedError)],
    ids=lambda value: getattr(value, "__name__", type(value).__name__))
def test_an_exception_arrives_with_its_type_and_message(error, raised):
  record = _staged_number(_fails_after_one(error), num_threads=2)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert sess.run(record) == 7
    with pytest.raises(raised) as caught:
      sess.run(record)
  assert type(error).__name__ in caught.value.message
  assert str(error) in caught.value.message


@pytest.mark.parametrize(
    "values,message",
    [(5, "feed_generator must yield a list or tuple of values for each record, got 5 of type int"),
     (np.zeros([1]), "must yield a list or tuple of values for each record, got .* of type ndarray"),
     ([1, 2], "must yield 1 values for each record, one for each entry of feed_list, got 2"),
     ([[1, 2]], "yielded an element of shape .2,. where an element of shape .. was expected"),
     (["text"], "could not be converted to the expected type")],
    ids=["no list", "an array", "too many", "shape", "type"])
def test_a_record_that_does_not_match_feed_list(values, message):
  record = _staged_number(lambda: [values])
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
      sess.run(record)


def test_an_ignored_exception_skips_one_record():
  class Numbers:
    """An iterator that continues after an error, which a generator cannot do."""

    def __init__(self):
      self._next = 0

    def __iter__(self):
      return self

    def __next__(self):
      self._next += 1
      if self._next == 2:
        raise ValueError("a bad line")
      if self._next == 5:
        raise StopIteration
      return [self._next]

  record = _staged_number(Numbers, ignored_exception_types=(tf.errors.INVALID_ARGUMENT,))
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, record) == [1, 3, 4]


_ONE = [[1]]


@pytest.mark.parametrize(
    "feed_generator,error,message",
    [(None, ValueError, "feed_list and feed_generator must be given together"),
     (3, TypeError, "feed_generator must be a generator, another iterable or a callable .* got 3"),
     ("rows", TypeError, "feed_generator must be a generator, .* got 'rows' of type str"),
     (lambda sess, path: _ONE, TypeError,
      "feed_generator must be callable without arguments or with the session alone, got")],
    ids=["none", "number", "text", "arguments"])
def test_a_wrong_generator(graph, feed_generator, error, message):
  number = tf.placeholder(tf.int64, [])
  nodes = len(graph.get_operations())
  with pytest.raises(error, match=message):
    tf.staged(number, feed_list=[number], feed_generator=feed_generator)
  assert len(graph.get_operations()) == nodes


def test_a_wrong_feed_list(graph):
  number = tf.placeholder(tf.int64, [], name="number")
  fixed = tf.constant(1, name="fixed")
  graph.prevent_feeding(fixed)
  cases = [
      (None, ValueError, "feed_list and feed_generator must be given together, got feed_list=None"),
      ([], TypeError, "feed_list must be a list or tuple of at least one placeholder"),
      (number, TypeError, "feed_list must be a list or tuple of at least one placeholder"),
      (["number:0"], TypeError, "feed_list[0] must be a tf.Tensor"),
      ([number, None], TypeError, "feed_list[1] must be a tf.Tensor or tf.SparseTensor, got None"),
      ([fixed], ValueError, "feed_list[0]: the tensor 'fixed:0' is marked as not feedable"),
      ([number, number], ValueError, "must feed each tensor once, got ['number:0'] more than once"),
      ([tf.placeholder(tf.variant, name="any")], ValueError, "'any:0' has type variant. Use feed_dict"),
  ]
  for feed_list, error, message in cases:
    with pytest.raises(error, match=re.escape(message)):
      tf.staged(fixed, feed_list=feed_list, feed_generator=_ONE)
  with pytest.raises(ValueError, match="must feed each tensor once"):
    tf.staged(
        number, feed_dict={number: tf.constant(1, tf.int64)}, feed_list=[number], feed_generator=_ONE)


def test_a_list_as_feed_dict_is_refused_with_a_hint_to_feed_list():
  number = tf.placeholder(tf.int64, [])
  with pytest.raises(TypeError, match="use feed_list= together with feed_generator="):
    tf.staged(number, [number])
