# SPDX-License-Identifier: Apache-2.0
"""Distributed sessions do not support stage thread pools, and refuse every request for one."""

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

from tensorflow_staging.python.testing import thread_report

# A server cannot be stopped, so all tests share one.
_server = None

_REFUSAL = "stage thread pools are not supported in distributed sessions.*local session"


@pytest.fixture
def target():
  """The address of a server in this process."""
  global _server
  _server = _server or tf.train.Server.create_local_server()
  return _server.target


def test_a_session_with_pools_is_refused(target):
  with pytest.raises(tf.errors.UnimplementedError, match=f"has 2 entries.*{target}.*{_REFUSAL}"):
    tf.Session(target, config=thread_report.config("p0", "p1"))


def test_a_monitored_session_with_pools_is_refused(target):
  tf.train.get_or_create_global_step()
  with pytest.raises(tf.errors.UnimplementedError, match=_REFUSAL):
    tf.train.MonitoredTrainingSession(master=target, config=thread_report.config("p0"))


def test_a_server_with_pools_is_refused():
  with pytest.raises(ValueError, match="session_stage_subgraph_thread_pool.*not supported in distributed sessions"):
    tf.train.Server.create_local_server(config=thread_report.config("p0"), start=False)


def test_a_run_is_refused(target):
  number = tf.constant(1)
  with tf.Session(target) as sess:
    with pytest.raises(tf.errors.UnimplementedError, match=f"asks for stage thread pool 3.*{_REFUSAL}"):
      sess.run(number, options=thread_report.on_pool(3))
    assert sess.run(number) == 1


def test_a_callable_is_refused(target):
  options = config_pb2.CallableOptions(fetch=[tf.constant(1).name], run_options=thread_report.on_pool(0))
  with tf.Session(target) as sess:
    with pytest.raises(tf.errors.UnimplementedError, match=_REFUSAL):
      sess._make_callable_from_options(options)


def test_a_partial_run_is_refused(target):
  number = tf.constant(1)
  with tf.Session(target) as sess:
    with pytest.raises(tf.errors.UnimplementedError, match=_REFUSAL):
      sess.partial_run_setup(number, options=thread_report.on_pool(0))
    assert sess.partial_run(sess.partial_run_setup(number), number) == 1


def test_a_step_fails_if_its_stage_asks_for_a_pool(target):
  record = tf.staged(tf.constant(1), use_stage_subgraph_thread_pool=True, name="grpc_pool")
  with tf.Session(target) as sess:
    with pytest.raises(tf.errors.UnimplementedError, match=_REFUSAL):
      with tf.make_prefetch_hook().running(sess):
        sess.run(record)
