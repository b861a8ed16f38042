# SPDX-License-Identifier: Apache-2.0
"""A stage that waits in Python leaves the threads of the session to the step."""

import contextlib
import queue
import threading
from collections.abc import Iterator

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util

# With as many producers, each inter-op thread of the session would wait in the region.
_THREADS = pytest.mark.parametrize("threads", [1, 2])
# At least the number of calls that wait at the end of a test.
_CALLS = 8
_STEP_OPTIONS = tf.compat.v1.RunOptions(timeout_in_ms=test_util.WAIT_SECONDS * 1000)


def _config(threads: int) -> tf.compat.v1.ConfigProto:
  return tf.ConfigProto(
      inter_op_parallelism_threads=threads, intra_op_parallelism_threads=1, use_per_session_threads=True)


class _Feed:
  """A queue of records that a region waits for, in a Python function."""

  def __init__(self, count: int):
    self._records = queue.Queue()
    for i in range(count):
      self._records.put(i)
    self._waiting = threading.Semaphore(0)
    self._ended = False

  def next(self, *unused) -> np.int64:
    """Returns the next record, or waits for it; raises `StopIteration` at the end."""
    if self._ended:
      raise StopIteration
    try:
      record = self._records.get_nowait()
    except queue.Empty:
      self._waiting.release()
      record = self._records.get()
    if record is None:
      raise StopIteration
    return np.int64(record)

  def await_waiting(self, count: int) -> None:
    """Waits until the region has begun to wait `count` times."""
    for _ in range(count):
      assert self._waiting.acquire(timeout=test_util.WAIT_SECONDS)

  @contextlib.contextmanager
  def ending(self) -> Iterator[None]:
    """Ends the data when the context is left, for all calls, also after an error: nothing else wakes them."""
    try:
      yield
    finally:
      self._ended = True
      for _ in range(_CALLS):
        self._records.put(None)


def _root(feed: _Feed) -> tf.Tensor:
  return tf.numpy_function(feed.next, [], tf.int64)


def _after_an_iterator(feed: _Feed) -> tf.Tensor:
  """The iterator's own thread continues the run."""
  element = tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(1000)).get_next()
  return tf.numpy_function(feed.next, [element], tf.int64)


def _beside_another(feed: _Feed) -> tf.Tensor:
  """The run has a second op that waits."""
  return _root(feed) + 0 * tf.numpy_function(lambda: np.int64(0), [], tf.int64)


def _in_a_function(feed: _Feed) -> tf.Tensor:
  return tf.function(lambda: _root(feed), autograph=False)()


def _dataset(feed: _Feed, calls: int) -> tf.data.Dataset:
  """The dataset calls the function in its own threads, with the runner of the run that began."""
  return tf.data.Dataset.range(1000).map(
      lambda i: tf.numpy_function(feed.next, [i], tf.int64), num_parallel_calls=calls, deterministic=False)


def _in_a_dataset(feed: _Feed, calls: int) -> tf.Tensor:
  return tf.compat.v1.data.make_one_shot_iterator(_dataset(feed, calls)).get_next()


@_THREADS
@pytest.mark.parametrize("region", [_root, _after_an_iterator, _beside_another, _in_a_function])
def test_a_region_that_waits_does_not_hold_up_the_step(threads, region):
  feed = _Feed(count=4)
  record = tf.staged(region(feed), num_threads=threads, capacity=4)
  other = tf.reduce_sum(tf.random.uniform([2, 2]))
  with tf.Session(config=_config(threads)) as sess, tf.make_prefetch_hook().running(sess), feed.ending():
    feed.await_waiting(threads)
    sess.run(other, options=_STEP_OPTIONS)
    # The step runs several ops that are worth a thread each.
    taken = [sess.run([record, other], options=_STEP_OPTIONS)[0] for _ in range(4)]
    assert sorted(taken) == list(range(4))


@_THREADS
def test_a_dataset_that_waits_does_not_hold_up_the_step(threads):
  feed = _Feed(count=4)
  record = tf.staged(_in_a_dataset(feed, calls=threads), capacity=4)
  with tf.Session(config=_config(threads)) as sess, tf.make_prefetch_hook().running(sess), feed.ending():
    # The calls ahead of the run wait, in as many threads as the session has.
    feed.await_waiting(threads)
    assert sorted(sess.run(record, options=_STEP_OPTIONS) for _ in range(4)) == list(range(4))


@_THREADS
def test_a_dataset_of_another_run_that_waits_does_not_hold_up_the_step(threads):
  feed = _Feed(count=4)
  # The graph of a staged run does not show the dataset.
  iterator = tf.compat.v1.data.make_initializable_iterator(_dataset(feed, calls=threads))
  record = tf.staged(iterator.get_next(), capacity=4)
  with tf.Session(config=_config(threads)) as sess:
    sess.run(iterator.initializer)
    with tf.make_prefetch_hook().running(sess), feed.ending():
      feed.await_waiting(threads)
      assert sorted(sess.run(record, options=_STEP_OPTIONS) for _ in range(4)) == list(range(4))


def test_a_source_of_a_join_that_waits_does_not_hold_up_another():
  waiting, ready = _Feed(count=0), _Feed(count=4)
  # The first source has more functions that wait than it has threads.
  record = tf.prefetch_join([_in_a_dataset(waiting, calls=8), _in_a_dataset(ready, calls=1)], capacity=4)
  with (tf.Session(config=_config(1)) as sess, tf.make_prefetch_hook().running(sess), waiting.ending(),
        ready.ending()):
    waiting.await_waiting(2)
    assert [sess.run(record, options=_STEP_OPTIONS) for _ in range(4)] == list(range(4))


def test_a_stage_of_a_chain_may_wait_for_the_stage_before():
  """The second stage waits in a Python function until the first one has computed a further record."""
  computed = threading.Semaphore(0)

  def compute(number: np.int64) -> np.int64:
    computed.release()
    return number

  def wait(number: np.int64) -> np.int64:
    for _ in range(2):
      assert computed.acquire(timeout=test_util.WAIT_SECONDS)
    return number

  element = tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(2)).get_next()
  first = tf.staged(tf.ensure_shape(tf.numpy_function(compute, [element], tf.int64), []), capacity=4)
  record = tf.staged(tf.ensure_shape(tf.numpy_function(wait, [first], tf.int64), []))
  with tf.Session(config=_config(1)) as sess, tf.make_prefetch_hook().running(sess):
    assert sess.run(record, options=_STEP_OPTIONS) == 0
    computed.release(2)


@_THREADS
def test_smart_stage_leaves_the_step_its_threads(threads):
  feed = _Feed(count=4)
  record = _after_an_iterator(feed)
  total = tf.get_variable("total", [], tf.int64, tf.zeros_initializer())
  trained = tf.assign_add(total, tf.reshape(record, []))
  tf.train.mark_target_node([trained])
  other = tf.reduce_sum(tf.random.uniform([2, 2]))
  config = _config(threads)
  config.graph_options.optimizer_options.do_smart_stage = True
  config.graph_options.optimizer_options.smart_stage_options.CopyFrom(
      tf.SmartStageOptions(num_threads=threads, capacity=4))
  with tf.Session(config=config) as sess:
    sess.run(total.initializer)
    with tf.make_prefetch_hook().running(sess), feed.ending():
      feed.await_waiting(threads)
      sess.run(other, options=_STEP_OPTIONS)
      for _ in range(4):
        sum_of_records = sess.run(trained, options=_STEP_OPTIONS)
      assert sum_of_records == sum(range(4))


def test_a_feed_generator_that_waits_leaves_the_step_its_thread():
  released = threading.Event()

  def records():
    yield [np.int64(7)]
    released.wait()

  with tf.Session(config=_config(1)) as sess:
    placeholder = tf.compat.v1.placeholder(tf.int64, [])
    record = tf.staged(placeholder + 1, feed_list=[placeholder], feed_generator=records)
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(record, options=_STEP_OPTIONS) == 8
      assert sess.run(tf.constant(1), options=_STEP_OPTIONS) == 1
      released.set()


def test_an_op_of_the_region_may_run_the_session():
  with tf.Session(config=_config(1)) as sess:
    inner = tf.reduce_sum(tf.ones([3]))
    calls = iter(range(3))

    def run_inner() -> np.float32:
      next(calls)
      return sess.run(inner, options=_STEP_OPTIONS)

    record = tf.staged(tf.numpy_function(run_inner, [], tf.float32))
    with tf.make_prefetch_hook().running(sess):
      assert test_util.drain(sess, record) == [3.0] * 3


def test_iterators_outlive_the_stage():
  dataset = tf.data.Dataset.range(1000).map(
      lambda i: tf.numpy_function(lambda n: n + 1, [i], tf.int64), num_parallel_calls=2)
  iterator = tf.compat.v1.data.make_one_shot_iterator(dataset)
  record = tf.staged(iterator.get_next())
  beside = iterator.get_next()
  with tf.Session(config=_config(1)) as sess:
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(record) == 1
    # The iterator calls its function ahead, with the means that the stage's first run gave it.
    rest = [sess.run(beside, options=_STEP_OPTIONS) for _ in range(500)]
    assert rest == list(range(rest[0], rest[0] + 500))


def test_a_stage_on_a_server_leaves_the_servers_threads_to_the_step():
  server = tf.train.Server.create_local_server(config=tf.ConfigProto(inter_op_parallelism_threads=1))
  feed = _Feed(count=4)
  record = tf.staged(_after_an_iterator(feed), capacity=4)
  other = tf.reduce_sum(tf.random.uniform([2, 2]))
  with tf.Session(server.target) as sess, tf.make_prefetch_hook().running(sess), feed.ending():
    feed.await_waiting(1)
    taken = [sess.run([record, other], options=_STEP_OPTIONS)[0] for _ in range(4)]
    assert taken == list(range(4))


def test_a_dataset_on_a_server_leaves_the_servers_threads_to_the_step():
  server = tf.train.Server.create_local_server(config=tf.ConfigProto(inter_op_parallelism_threads=1))
  feed = _Feed(count=4)
  iterator = tf.compat.v1.data.make_initializable_iterator(_dataset(feed, calls=1))
  record = tf.staged(iterator.get_next(), capacity=4)
  with tf.Session(server.target) as sess:
    sess.run(iterator.initializer)
    with tf.make_prefetch_hook().running(sess), feed.ending():
      feed.await_waiting(1)
      assert [sess.run(record, options=_STEP_OPTIONS) for _ in range(4)] == list(range(4))


def _warnings(caplog, config: tf.compat.v1.ConfigProto) -> list[str]:
  with (caplog.at_level("WARNING", logger="tensorflow"), tf.Session(config=config) as sess,
        tf.make_prefetch_hook().running(sess)):
    return [record.getMessage() for record in caplog.records if " producers" in record.getMessage()]


def _pool_warnings(caplog, threads: int, stages: int) -> list[str]:
  config = tf.ConfigProto()
  config.session_stage_subgraph_thread_pool.add(inter_op_threads_num=threads)
  for _ in range(stages):
    tf.staged(tf.constant(1), num_threads=2, use_stage_subgraph_thread_pool=True)
  return _warnings(caplog, config)


def test_stages_that_share_a_small_pool_warn(caplog):
  warnings = _pool_warnings(caplog, threads=3, stages=2)
  assert len(warnings) == 1
  assert "'prefetch', 'prefetch_1' have 4 producers on stage thread pool 0" in warnings[0]
  assert "inter_op_threads_num=3" in warnings[0]


@pytest.mark.parametrize(("threads", "stages"), [(4, 2), (1, 1)])
def test_stages_with_enough_threads_do_not_warn(caplog, threads, stages):
  assert not _pool_warnings(caplog, threads, stages)


@pytest.mark.parametrize(("threads", "warns"), [(0, False), (1, True), (2, True), (3, False)])
def test_producers_that_occupy_all_threads_of_the_session_warn(caplog, threads, warns):
  tf.staged(tf.constant(1), num_threads=2)
  warnings = _warnings(caplog, tf.ConfigProto(inter_op_parallelism_threads=threads))
  assert len(warnings) == warns
  if warns:
    assert f"'prefetch' have 2 producers, and the session has inter_op_parallelism_threads={threads}." in warnings[0]
    assert "Set at least 3" in warnings[0]
