# SPDX-License-Identifier: Apache-2.0
"""ConfigProto.operation_timeout_in_ms limits steps only; a stage may wait longer, for its input and for room."""

import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import server_proxy
from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util

# Servers cannot be stopped. One has no timeout of its own, the other has.
_servers = {}
_MILLIS = 400

_TRIES = 50  # Each lasts up to _MILLIS.


def _take(sess: tf.Session, fetch: tf.Tensor):
  for _ in range(_TRIES):
    try:
      return sess.run(fetch)
    except tf.errors.DeadlineExceededError:
      pass
  raise AssertionError("no record came")


def _server(millis: int) -> tf.distribute.Server:
  if millis not in _servers:
    _servers[millis] = tf.train.Server.create_local_server(tf.ConfigProto(operation_timeout_in_ms=millis))
  return _servers[millis]


@pytest.fixture(params=["local", "in_process", "connected"])
def target(request):
  """The target of a local session, of a session of a server in this process, and of one that is connected to it."""
  if request.param == "local":
    yield ""
  elif request.param == "in_process":
    yield _server(0).target
  else:
    with server_proxy.ServerProxy(_server(0).target) as proxy:
      yield proxy.target


@pytest.mark.parametrize("smart_stage", [False, True], ids=["staged", "smart_stage"])
def test_a_step_that_times_out_does_not_end_the_stage(target, smart_stage, request):
  may_go_on = threading.Event()

  def wait(value):
    may_go_on.wait(20)
    return value

  record = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next()
  value = tf.numpy_function(wait, [record], tf.int64)
  name = "timeout_" + request.node.callspec.id.replace("-", "_")
  config = smart_stage_sessions.smart_stage_config(name=name) if smart_stage else tf.ConfigProto()
  if not smart_stage:
    value = tf.staged(value, name=name)
  result = value + tf.get_variable(name, initializer=np.int64(10))
  with tf.Session(target) as sess:
    sess.run(tf.global_variables_initializer())
  config.operation_timeout_in_ms = _MILLIS
  with tf.Session(target, config=config) as sess:
    if not target:
      sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      # Two steps, so that the stage certainly waits for longer than the timeout.
      for _ in range(2):
        with pytest.raises(tf.errors.DeadlineExceededError):
          sess.run(result)
      may_go_on.set()
      taken = [_take(sess, result) for _ in range(3)]
      # A step that times out at the moment at which its record comes has taken it.
      assert taken == sorted(set(taken))
      assert taken[0] >= 10


@pytest.mark.parametrize("millis", [0, _MILLIS], ids=["of_the_session", "of_the_server"])
@pytest.mark.parametrize("connected", [False, True], ids=["in_process", "connected"])
def test_a_record_that_waits_for_room_for_longer_than_the_timeout_arrives(millis, connected):
  source = test_util.Source(end=6)
  name = f"room_{millis}_{connected}"
  record = tf.staged(source.tensor(), capacity=1, name=name)
  server = _server(millis)
  with server_proxy.ServerProxy(server.target) as proxy:
    config = tf.ConfigProto(operation_timeout_in_ms=0 if millis else _MILLIS)
    with tf.Session(proxy.target if connected else server.target, config=config) as sess:
      with tf.make_prefetch_hook().running(sess):
        # The first step takes longest. One that times out just then has taken record 0.
        first = _take(sess, record)
        assert first in (0, 1)
        # The next record is in the buffer, and the one after it waits for room.
        source.wait_until_asked(first + 3)
        threading.Event().wait(2 * _MILLIS / 1000)
        assert [_take(sess, record) for _ in range(first + 1, 6)] == list(range(first + 1, 6))
        with pytest.raises(tf.errors.OutOfRangeError):
          _take(sess, record)
