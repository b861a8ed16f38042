# SPDX-License-Identifier: Apache-2.0
"""Runs and stages can use a stage thread pool of the session."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

from tensorflow_staging.python.testing import test_util
from tensorflow_staging.python.testing import thread_report


@pytest.mark.parametrize("pool", [0, 1])
def test_a_run_takes_both_pools_of_its_id_and_the_next_run_none(pool):
  report = thread_report.report()
  with tf.Session(config=thread_report.config("p0", "p1")) as sess:
    thread_report.assert_on_pool(sess.run(report, options=thread_report.on_pool(pool)), f"p{pool}")
    thread_report.assert_on_session(sess.run(report))
    # The id alone selects no pool.
    thread_report.assert_on_session(sess.run(report, options=tf.RunOptions(stage_subgraph_thread_pool_id=pool)))


@pytest.mark.parametrize("pool", [0, 1])
def test_make_callable_takes_both_pools_of_its_id(pool):
  report = thread_report.report()
  with tf.Session(config=thread_report.config("p0", "p1")) as sess:
    with_pool = sess.make_callable(list(report), accept_options=True)
    without = sess.make_callable(list(report))
    options = thread_report.on_pool(pool)
    thread_report.assert_on_pool(thread_report.Threads(*with_pool(options=options)), f"p{pool}")
    thread_report.assert_on_session(thread_report.Threads(*without()))


@pytest.mark.parametrize("pool", [0, 1])
def test_a_callable_with_options_takes_both_pools_of_its_id(pool):
  report = thread_report.report()
  options = config_pb2.CallableOptions(
      fetch=[tensor.name for tensor in report], run_options=thread_report.on_pool(pool))
  with tf.Session(config=thread_report.config("p0", "p1")) as sess:
    run = sess._make_callable_from_options(options)
    thread_report.assert_on_pool(thread_report.Threads(*run()), f"p{pool}")


@pytest.mark.parametrize("pool", [0, 1])
def test_a_stage_runs_on_the_pool_of_its_id_and_the_step_does_not(pool):
  staged = tf.staged(
      thread_report.report()._asdict(), use_stage_subgraph_thread_pool=True, stage_subgraph_thread_pool_id=pool)
  step = thread_report.report()
  config = thread_report.config("p0", "p1")
  with tf.Session(config=config) as sess, tf.make_prefetch_hook().running(sess):
    for _ in range(3):
      in_stage, in_step = sess.run((staged, step))
      thread_report.assert_on_pool(thread_report.Threads(**in_stage), f"p{pool}")
      thread_report.assert_on_session(in_step)


@pytest.mark.parametrize("pool", [0, 1])
def test_smart_stage_runs_on_the_pool_of_its_options(pool):
  number = test_util.dataset_record(3)
  thread = thread_report.kernel_name(number)
  variable = tf.get_variable("variable", [], tf.int64, initializer=tf.zeros_initializer())
  step = tf.strings.join([thread, tf.as_string(number + variable)], " ")
  tf.train.mark_target_node([step])
  config = thread_report.config("p0", "p1")
  optimizer_options = config.graph_options.optimizer_options
  optimizer_options.do_smart_stage = True
  optimizer_options.smart_stage_options.CopyFrom(
      tf.SmartStageOptions(use_stage_subgraph_thread_pool=True, stage_subgraph_thread_pool_id=pool))
  with tf.Session(config=config) as sess:
    sess.run(variable.initializer)
    with tf.make_prefetch_hook().running(sess):
      assert test_util.drain(sess, step) == [b"p%d_inter_op %d" % (pool, i) for i in range(3)]


def test_a_stage_without_the_option_runs_on_the_sessions_threads():
  staged = tf.staged(thread_report.report()._asdict())
  with tf.Session(config=thread_report.config("p0")) as sess, tf.make_prefetch_hook().running(sess):
    thread_report.assert_on_session(thread_report.Threads(**sess.run(staged)))


def test_a_stage_with_python_and_without_the_option_runs_on_its_own_threads():
  with tf.control_dependencies([tf.numpy_function(lambda: np.int64(0), [], tf.int64)]):
    report = thread_report.report()
  staged = tf.staged(report._asdict())
  with tf.Session(config=thread_report.config("p0")) as sess, tf.make_prefetch_hook().running(sess):
    inter_op, intra_op = sess.run(staged)["names"]
    assert b"staging_region" in inter_op
    assert b"Eigen" in intra_op


def test_a_pool_wins_over_running_in_the_callers_thread():
  report = thread_report.report()
  config = thread_report.config("p0")
  config.inter_op_parallelism_threads = -1
  with tf.Session(config=config) as sess:
    thread_report.assert_on_pool(sess.run(report, options=thread_report.on_pool(0)), "p0")


def test_a_long_name_is_whole_for_tensorflow_and_cut_by_the_kernel():
  report = thread_report.report()
  with tf.Session(config=thread_report.config("StageThreadPool_1")) as sess:
    threads = sess.run(report, options=thread_report.on_pool(0))
  thread_report.assert_on_pool(threads, "StageThreadPool_1")
  assert list(threads.kernel_names) == [b"StageThreadPool"] * 2


@pytest.mark.parametrize("pool", [0, 1])
def test_records_arrive_from_each_pool(pool):
  record = tf.staged(
      test_util.dataset_record(20), num_threads=2, use_stage_subgraph_thread_pool=True,
      stage_subgraph_thread_pool_id=pool)
  with tf.Session(config=thread_report.config("p0", "p1")) as sess, tf.make_prefetch_hook().running(sess):
    assert sorted(test_util.drain(sess, record)) == list(range(20))


@pytest.mark.parametrize("pools", [0, 2])
def test_a_pool_that_the_session_lacks_is_named_to_the_step(pools):
  record = tf.staged(
      test_util.dataset_record(1), use_stage_subgraph_thread_pool=True, stage_subgraph_thread_pool_id=2)
  config = thread_report.config(*["p0", "p1"][:pools])
  with tf.Session(config=config) as sess, tf.make_prefetch_hook().running(sess):
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"stage thread pool 2, but the session has {pools}"):
      sess.run(record)


@pytest.mark.parametrize("pools", [0, 2])
@pytest.mark.parametrize("pool", [-1, 2])
def test_a_pool_that_the_session_lacks_is_named_to_the_run(pools, pool):
  number = tf.constant(1)
  with tf.Session(config=thread_report.config(*["p0", "p1"][:pools])) as sess:
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"stage thread pool {pool}, but the session has {pools}"):
      sess.run(number, options=thread_report.on_pool(pool))


@pytest.mark.parametrize("field", ["inter_op_threads_num", "intra_op_threads_num"])
@pytest.mark.parametrize("threads", [-3, 100_000_000])
def test_a_number_of_threads_that_no_pool_can_have_fails_when_the_session_is_made(field, threads):
  config = tf.ConfigProto()
  config.session_stage_subgraph_thread_pool.add()
  config.session_stage_subgraph_thread_pool.add(**{field: threads})
  error = rf"pool\[1\]\.{field} must be from 1 to 16382, or 0, .*; got {threads}\."
  with pytest.raises(tf.errors.InvalidArgumentError, match=error):
    tf.Session(config=config)


def test_zero_threads_means_tensorflows_own_choice():
  config = tf.ConfigProto(inter_op_parallelism_threads=3, intra_op_parallelism_threads=2)
  config.session_stage_subgraph_thread_pool.add(global_name="zero")
  with tf.Session(config=config) as sess:
    assert sess.run(tf.constant(1), options=thread_report.on_pool(0)) == 1
    thread_report.assert_pool_threads("zero_inter_op", 3)
    thread_report.assert_pool_threads("zero_intra_op", 2)


@pytest.mark.parametrize("on_server", [False, True], ids=["local", "server"])
def test_an_iterator_that_a_run_on_a_pool_creates_outlives_the_run(on_server):
  """An iterator with a shared name keeps the device of the run that creates it."""
  target = tf.distribute.Server.create_local_server().target if on_server else ""
  dataset = tf.data.Dataset.range(100).map(lambda value: value + 1, num_parallel_calls=4)
  iterator = tf.data.make_initializable_iterator(dataset, shared_name=f"shared_{on_server}")
  record = iterator.get_next()
  with tf.Session(target, config=thread_report.config("p0")) as sess:
    sess.run(iterator.initializer, options=thread_report.on_pool(0))
    assert [sess.run(record) for _ in range(50)] == list(range(1, 51))
