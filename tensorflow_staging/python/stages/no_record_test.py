# SPDX-License-Identifier: Apache-2.0
"""A staged run that puts no record, because a tensor of the record has no value, ends its stage with an error."""

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import control_flow
from tensorflow_staging.python.testing import test_util


@pytest.fixture(autouse=True)
def _version_1() -> Iterator[None]:
  with control_flow.version(1):
    yield


@contextlib.contextmanager
def _session(on_server: bool) -> Iterator[tf.Session]:
  """Opens a session whose steps fail instead of waiting for ever."""
  target = tf.train.Server.create_local_server().target if on_server else ""
  config = tf.ConfigProto(operation_timeout_in_ms=test_util.WAIT_SECONDS * 1000)
  with tf.Session(target, config=config) as sess, tf.make_prefetch_hook().running(sess):
    yield sess


def _number() -> tf.Tensor:
  """Returns 0, 1, 2 and so on, without an end: a run that is skipped gives the step nothing to end with."""
  return tf.data.make_one_shot_iterator(tf.data.Dataset.counter()).get_next()


def _below(number: tf.Tensor, limit: int) -> tf.Tensor:
  """Returns a tensor that has a value only for numbers less than `limit`."""
  return tf.raw_ops.Switch(data=number, pred=number < limit)[1]


@pytest.mark.parametrize("on_server", [False, True])
@pytest.mark.parametrize("records", [0, 3])
def test_a_record_without_a_value_is_an_error(on_server, records):
  staged = tf.staged(_below(_number(), records))
  with _session(on_server) as sess:
    assert [sess.run(staged) for _ in range(records)] == list(range(records))
    with pytest.raises(tf.errors.InvalidArgumentError, match="put no record"):
      sess.run(staged)


def test_the_error_cannot_be_ignored():
  staged = tf.staged(_below(_number(), 0), ignored_exception_types=[tf.errors.InvalidArgumentError])
  with _session(on_server=False) as sess, pytest.raises(tf.errors.InvalidArgumentError, match="put no record"):
    sess.run(staged)


def test_each_source_of_a_join_is_checked():
  staged = tf.prefetch_join([[_below(_number(), 1)], [_below(_number(), 2)]])
  taken = []
  with _session(on_server=False) as sess, pytest.raises(tf.errors.InvalidArgumentError, match="put no record"):
    while True:
      taken.extend(sess.run(staged))
  assert set(taken) <= {0, 1}


def test_a_chain_reports_the_error_of_its_first_stage():
  staged = tf.staged(tf.staged(_below(_number(), 2)) * 10)
  with _session(on_server=False) as sess:
    assert [sess.run(staged), sess.run(staged)] == [0, 10]
    with pytest.raises(tf.errors.InvalidArgumentError, match="put no record"):
      sess.run(staged)


def test_no_record_of_a_nested_conditional_is_skipped():
  number = _number()
  inner = lambda: tf.cond(number > 3, lambda: number + number, lambda: np.int64(0))
  staged = tf.staged(tf.cond(number % 2 < 1, inner, lambda: -number))
  with _session(on_server=False) as sess:
    assert [sess.run(staged) for _ in range(4)] == [0, -1, 0, -3]
    # Grappler makes a dead tensor of number + number.
    try:
      assert sess.run(staged) == 8
    except tf.errors.InvalidArgumentError as error:
      assert "put no record" in error.message
