# SPDX-License-Identifier: Apache-2.0
"""SmartStage in the sessions of a server, consecutive and concurrent ones."""

import contextlib

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util


@pytest.fixture(scope="module")
def server():
  return tf.train.Server.create_local_server()


def _step(first=0, records=100):
  """Returns 1000 plus twice a number from an iterator."""
  record = tf.data.make_one_shot_iterator(tf.data.Dataset.range(first, first + records)).get_next()
  hashed = tf.strings.to_number(tf.as_string(record * 2), tf.int64)
  return hashed + tf.get_variable("variable", initializer=np.int64(1000))


@contextlib.contextmanager
def _session(server, smart_stage=True):
  config = smart_stage_sessions.smart_stage_config(capacity=3) if smart_stage else None
  with tf.Session(server.target, config=config) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      yield sess


def test_a_session_of_a_server(server):
  result = _step()
  with _session(server) as sess:
    assert "AsString" not in smart_stage_sessions.staged_ops(sess, result)
    assert [sess.run(result) for _ in range(20)] == list(range(1002, 1042, 2))


def test_the_configuration_of_the_server_alone_turns_smart_stage_on():
  server = tf.train.Server.create_local_server(config=smart_stage_sessions.smart_stage_config(capacity=3))
  result = _step()
  with tf.train.MonitoredTrainingSession(server.target, hooks=[tf.make_prefetch_hook()]) as sess:
    assert "AsString" not in smart_stage_sessions.staged_ops(sess, result)
    assert [sess.run(result) for _ in range(20)] == list(range(1002, 1042, 2))


def test_consecutive_sessions_do_not_share_records(server):
  result = _step()
  for _ in range(2):
    with _session(server) as sess:
      assert [sess.run(result) for _ in range(5)] == list(range(1000, 1010, 2))


def test_feeding_in_a_session_of_a_server(server):
  record = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next()
  result = record * 2 + tf.get_variable("variable", initializer=np.int64(1000))
  with _session(server) as sess:
    assert sess.run(result, {record: 50}) == 1100
    assert sess.run(result) == 1000


def test_two_concurrent_sessions_with_different_graphs(server):
  with contextlib.ExitStack() as stack:
    runs = []
    for first in (0, 5000):
      stack.enter_context(tf.Graph().as_default())
      # With different names, the staged nodes differ, too.
      with tf.name_scope(f"graph{first}"):
        result = _step(first)
      sess = stack.enter_context(_session(server))
      assert "AsString" not in " ".join(smart_stage_sessions.staged_ops(sess, result))
      runs.append((sess, result, first))
    for i in range(1, 10):
      for sess, result, first in runs:
        assert sess.run(result) == 2 * (first + i) + 1000


@pytest.mark.parametrize("smart_stage", [True, False], ids=["smart_stage", "staged"])
def test_the_end_of_one_session_leaves_the_stage_of_another_running(server, smart_stage):
  record = tf.data.make_one_shot_iterator(tf.data.Dataset.range(1000)).get_next()
  if not smart_stage:
    record = tf.staged(record, capacity=3)
  result = record * 2 + tf.get_variable("variable", initializer=np.int64(0))
  values = []
  with _session(server, smart_stage) as sess:
    values.append(sess.run(result))
    for _ in range(3):
      with _session(server, smart_stage) as other:
        other.run(result)
      values += [sess.run(result) for _ in range(10)]
  assert values == sorted(set(values))


def test_a_graph_grows_in_a_session_with_devices_of_its_own(server):
  record = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next()
  variable = tf.get_variable("variable", initializer=np.int64(1000))
  result = record * 2 + variable
  config = smart_stage_sessions.smart_stage_config()
  config.isolate_session_state = True
  with tf.Session(server.target, config=config) as sess:
    sess.run(variable.initializer)
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(result) == 1000
      assert sess.run(record + variable) == 1001
      assert sess.run(result) == 1004


@pytest.mark.parametrize("smart_stage", [True, False])
def test_a_session_that_brings_its_own_cluster(server, smart_stage):
  cluster = tf.train.ClusterSpec({"worker": [server.target.removeprefix("grpc://")]}).as_cluster_def()
  config = smart_stage_sessions.smart_stage_config(capacity=3) if smart_stage else tf.ConfigProto()
  config.cluster_def.CopyFrom(cluster)
  result = _step()
  for _ in range(2):
    with tf.Session(server.target, config=config) as sess:
      sess.run(tf.global_variables_initializer())
      with tf.make_prefetch_hook().running(sess):
        assert [sess.run(result) for _ in range(5)] == list(range(1000, 1010, 2))


# The total length of a graph's node names, in bytes.
_NAMES_BYTES = 3 << 20
_ROUNDS = 60


def test_a_server_forgets_the_graphs_of_sessions_that_have_ended(server):
  result = _step()
  for i in range(300):
    tf.no_op(name=f"{'long' * (_NAMES_BYTES // 300 // 4)}_{i}")
  resident = 0
  for i in range(_ROUNDS):
    with _session(server) as sess:
      sess.run(result)
    # The allocator's pools have grown by then, though not completely after many other tests.
    if i == _ROUNDS // 2:
      resident = test_util.resident_bytes()
  assert test_util.resident_bytes() - resident < _NAMES_BYTES * _ROUNDS // 3
