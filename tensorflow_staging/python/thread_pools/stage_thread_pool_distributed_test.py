# SPDX-License-Identifier: Apache-2.0
"""The process that runs a graph of a distributed session has the stage thread pools of that session."""

import threading

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

from tensorflow_staging.python.testing import server_proxy
from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util
from tensorflow_staging.python.testing import thread_report

# A server cannot be stopped, so all tests share one. It runs graphs in this process.
_server = None

_SESSIONS = 100


@pytest.fixture
def target():
  """The address of a server in this process, to which its sessions need no connection."""
  global _server
  _server = _server or tf.train.Server.create_local_server()
  return _server.target


@pytest.fixture(params=["in_process", "connected"])
def any_target(target, request):
  """The address of a server, to which sessions need no connection, or need one."""
  if request.param == "in_process":
    yield target
  else:
    with server_proxy.ServerProxy(target) as proxy:
      yield proxy.target


@pytest.mark.parametrize("pool", [0, 1])
def test_a_stage_runs_on_the_pool_of_its_id_and_the_step_does_not(any_target, pool, request):
  staged = tf.staged(
      thread_report.report()._asdict(), use_stage_subgraph_thread_pool=True, stage_subgraph_thread_pool_id=pool,
      name=f"grpc_pool_{request.node.callspec.id.replace('-', '_')}")
  step = thread_report.report()
  with tf.Session(any_target, config=thread_report.config("w0", "w1")) as sess, tf.make_prefetch_hook().running(sess):
    for _ in range(3):
      in_stage, in_step = sess.run((staged, step))
      thread_report.assert_on_pool(thread_report.Threads(**in_stage), f"w{pool}")
      thread_report.assert_on_session(in_step)
    # No run asks for the other pool.
    thread_report.assert_pool_threads(f"w{1 - pool}_", 0)


def test_smart_stage_runs_on_the_pool_of_its_options(target):
  number = test_util.dataset_record(3)
  thread = thread_report.kernel_name(number)
  variable = tf.get_variable("smart_pool", [], tf.int64, initializer=tf.zeros_initializer())
  step = tf.strings.join([thread, tf.as_string(number + variable)], " ")
  tf.train.mark_target_node([step])
  config = thread_report.config("smart")
  config.MergeFrom(smart_stage_sessions.smart_stage_config(use_stage_subgraph_thread_pool=True, name="smart_pool"))
  with tf.Session(target, config=config) as sess:
    sess.run(variable.initializer)
    with tf.make_prefetch_hook().running(sess):
      assert test_util.drain(sess, step) == [b"smart_inter_op %d" % number for number in range(3)]


def test_a_run_and_a_callable_take_both_pools_of_their_id_and_the_next_run_none(any_target):
  report = thread_report.report()
  options = config_pb2.CallableOptions(
      fetch=[tensor.name for tensor in report], run_options=thread_report.on_pool(1))
  with tf.Session(any_target, config=thread_report.config("r0", "r1")) as sess:
    thread_report.assert_on_pool(sess.run(report, options=thread_report.on_pool(0)), "r0")
    thread_report.assert_on_session(sess.run(report))
    run = sess._make_callable_from_options(options)
    thread_report.assert_on_pool(thread_report.Threads(*run()), "r1")
    thread_report.assert_on_session(sess.run(report))


def test_a_stage_that_calls_python_runs_on_its_pool(target):
  with tf.control_dependencies([tf.numpy_function(lambda: np.int64(0), [], tf.int64)]):
    report = thread_report.report()
  staged = tf.staged(report._asdict(), use_stage_subgraph_thread_pool=True, name="grpc_python_pool")
  with tf.Session(target, config=thread_report.config("py")) as sess, tf.make_prefetch_hook().running(sess):
    thread_report.assert_on_pool(thread_report.Threads(**sess.run(staged)), "py")


def test_a_dataset_goes_on_after_the_session_whose_pool_it_used(target):
  """The iterator belongs to the server. Its threads keep what ran it first, which was a pool that has ended."""
  dataset = tf.data.Dataset.range(1000).map(lambda number: number + 1, num_parallel_calls=2).prefetch(2)
  iterator = tf.data.make_initializable_iterator(dataset, shared_name="outlives_its_pool")
  record = iterator.get_next()
  with tf.Session(target, config=thread_report.config("first")) as sess:
    sess.run(iterator.initializer)
    assert sess.run(record, options=thread_report.on_pool(0)) == 1
  # The dataset's own threads have the name of the inter-op thread that started them.
  thread_report.assert_pool_threads("first_intra_op", 0)
  with tf.Session(target) as sess:
    assert [sess.run(record) for _ in range(500)] == list(range(2, 502))


def test_sessions_of_one_name_share_one_pool(target):
  report = thread_report.report()
  config = thread_report.config("together")
  with tf.Session(target, config=config) as training, tf.Session(target, config=config) as evaluation:
    names = [list(sess.run(report, options=thread_report.on_pool(0)).names) for sess in (training, evaluation)]
    # Each name ends with the id of its thread, so equal names are the same threads.
    assert names[0] == names[1]
    thread_report.assert_pool_threads("together", 2)


def test_many_sessions_leave_no_thread(target):
  number = tf.constant(7)
  config = thread_report.config("", "many")
  for index in range(_SESSIONS):
    with tf.Session(target, config=config) as sess:
      assert sess.run(number, options=thread_report.on_pool(index % 2)) == 7
  thread_report.assert_pool_threads("many", 0)
  thread_report.assert_pool_threads("stage0_", 0)


def test_a_session_that_closes_during_a_run_on_its_pool(target):
  """The run ends in a thread of the pool, which is then the last one to need the pool."""
  in_run = threading.Event()
  closed = threading.Event()

  def wait():
    in_run.set()
    closed.wait(test_util.WAIT_SECONDS)

  op = tf.numpy_function(wait, [], [])
  sess = tf.Session(target, config=thread_report.config("closes"))
  raised = []

  def run():
    try:
      sess.run(op, options=thread_report.on_pool(0))
    except (RuntimeError, tf.errors.OpError) as error:
      raised.append(error)

  thread = threading.Thread(target=run)
  thread.start()
  assert in_run.wait(test_util.WAIT_SECONDS)
  thread_report.assert_pool_threads("closes", 2)
  closing = threading.Thread(target=sess.close)
  closing.start()
  closed.set()
  thread.join()
  closing.join()
  thread_report.assert_pool_threads("closes", 0)


@pytest.mark.parametrize("pool", [-1, 2])
@pytest.mark.parametrize("pools", [0, 2])
def test_a_pool_that_the_session_lacks_is_named_to_the_run(target, pools, pool):
  number = tf.constant(1)
  with tf.Session(target, config=thread_report.config(*["l0", "l1"][:pools])) as sess:
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"stage thread pool {pool}, but the session has {pools}"):
      sess.run(number, options=thread_report.on_pool(pool))
    assert sess.run(number) == 1


def test_a_pool_that_the_session_lacks_is_named_to_the_step(target):
  record = tf.staged(test_util.dataset_record(1), use_stage_subgraph_thread_pool=True, name="grpc_lacks_pool")
  with tf.Session(target) as sess, tf.make_prefetch_hook().running(sess):
    with pytest.raises(tf.errors.InvalidArgumentError, match="stage thread pool 0, but the session has 0"):
      sess.run(record)


def test_a_run_that_also_asks_for_other_threads_is_refused(target):
  number = tf.constant(1)
  options = thread_report.on_pool(0)
  options.experimental.use_run_handler_pool = True
  with tf.Session(target, config=thread_report.config("o0")) as sess:
    with pytest.raises(tf.errors.InvalidArgumentError, match="use_run_handler_pool each choose the threads"):
      sess.run(number, options=options)
    assert sess.run(number) == 1


@pytest.mark.parametrize("field", ["inter_op_threads_num", "intra_op_threads_num"])
@pytest.mark.parametrize("size", [-1, 16383])
def test_a_number_of_threads_that_no_pool_can_have_fails_when_the_session_is_made(target, field, size):
  config = thread_report.config("sized")
  setattr(config.session_stage_subgraph_thread_pool[0], field, size)
  with pytest.raises(tf.errors.InvalidArgumentError, match=f"{field} must be from 1 to 16382.*got {size}"):
    tf.Session(target, config=config)


def test_a_core_that_the_workers_process_may_not_use_fails_the_run(target):
  number = tf.constant(1)
  with tf.Session(target, config=thread_report.config("cores", cores=(1 << 20,))) as sess:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"cpu_affinity has 1048576; this process may use"):
      sess.run(number, options=thread_report.on_pool(0))
    assert sess.run(number) == 1


def test_a_partial_run_is_refused(target):
  number = tf.constant(1)
  with tf.Session(target, config=thread_report.config("p0")) as sess:
    with pytest.raises(tf.errors.UnimplementedError, match="partial runs of a distributed session"):
      sess.partial_run_setup(number, options=thread_report.on_pool(0))
    assert sess.partial_run(sess.partial_run_setup(number), number) == 1


def test_a_server_with_pools_of_its_own_is_refused():
  with pytest.raises(ValueError, match="session_stage_subgraph_thread_pool of a server must be empty, got 1 entries"):
    tf.train.Server.create_local_server(config=thread_report.config("p0"), start=False)
