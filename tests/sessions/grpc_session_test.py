# SPDX-License-Identifier: Apache-2.0
"""A session of a `tf.train.Server` in the same process runs stages as a local session does."""

import gc
import sys
import textwrap
import threading

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util

# A server cannot be stopped, so all tests share one. It keeps the buffer of a stage while any session
# has the stage, which may last a moment longer than the session: each test has its own stage name.
_server = None
# The number of sessions that a test opens, one after the other, until the server has released an earlier one.
_MAX_SESSIONS = 100


@pytest.fixture
def target():
  """The address of a server that all tests share."""
  global _server
  _server = _server or tf.train.Server.create_local_server()
  return _server.target


def test_all_of_the_data_with_several_threads(target):
  record = tf.staged(test_util.dataset_record(100), num_threads=4, name="grpc_threads")
  taken = []
  hooks = [tf.make_prefetch_hook()]
  with tf.train.MonitoredTrainingSession(master=target, hooks=hooks) as sess:
    while not sess.should_stop():
      taken.append(sess.run(record))
  assert sorted(taken) == list(range(100))


def test_a_chain_of_stages_and_python_feeds(target):
  number = tf.placeholder(tf.int64, [])
  first = tf.staged(
      number, feed_list=[number], feed_generator=lambda: ([n] for n in range(5)), name="grpc_first")
  second = tf.staged(first + 1, name="grpc_second")
  with tf.Session(target) as sess, tf.make_prefetch_hook().running(sess):
    assert test_util.drain(sess, second) == [1, 2, 3, 4, 5]


def test_the_cause_of_an_error_arrives(target):
  line = tf.identity("seven")
  record = tf.staged(tf.string_to_number(line, tf.int64, name="parse_line"), name="grpc_error")
  with tf.Session(target) as sess, tf.make_prefetch_hook().running(sess):
    with pytest.raises(tf.errors.InvalidArgumentError, match="seven") as raised:
      sess.run(record)
  assert "parse_line" in raised.value.message


def test_a_session_that_is_closed_before_its_stages_end_logs_nothing(tmp_path):
  """Closes sessions while a producer waits for room, runs, has ended, and waits for a slow source."""
  program = tmp_path / "program.py"
  program.write_text(textwrap.dedent("""
      import threading
      import tensorflow as tf

      target = tf.train.Server.create_local_server().target
      closed = threading.Event()

      def slow(number):
        if number == 1:
          closed.wait()
        return number

      def close_early(name, dataset, capacity):
        with tf.Graph().as_default():
          record = tf.staged(tf.data.make_one_shot_iterator(dataset()).get_next(), capacity=capacity, name=name)
          sess = tf.Session(target)
          hook = tf.make_prefetch_hook()
          hook.after_create_session(sess, None)
          sess.run(record)
          threading.Timer(0.1, closed.set).start()
          sess.close()
          hook.end(sess)

      for i in range(10):
        close_early(f"full_{i}", lambda: tf.data.Dataset.range(10**9), 1)
        close_early(f"runs_{i}", lambda: tf.data.Dataset.range(10**9), 10**6)
        close_early(f"ended_{i}", lambda: tf.data.Dataset.range(1), 1)
      closed.clear()
      slow_numbers = lambda: tf.data.Dataset.range(9).map(lambda i: tf.numpy_function(slow, [i], tf.int64))
      close_early("slow", slow_numbers, 1)
      """))
  output = test_util.completed([sys.executable, program.name], tmp_path, TF_CPP_MIN_LOG_LEVEL="1").stderr
  assert [line for line in output.splitlines() if "tensorflow_staging" in line] == []


def test_an_error_names_the_missing_hook(target):
  record = tf.staged(tf.constant(1), name="grpc_no_hook")
  with tf.Session(target) as sess:
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"grpc_no_hook.*make_prefetch_hook"):
      sess.run(record)


@pytest.mark.parametrize("end", ["hook", "close", "delete"])
def test_closing_in_any_order_while_a_producer_waits(target, end):
  source = test_util.Source()
  record = tf.staged(source.tensor(), capacity=2, name="grpc_" + end)
  sess = tf.Session(target)
  hook = tf.make_prefetch_hook()
  hook.after_create_session(sess)
  assert sess.run(record) == 0
  source.wait_until_asked(3)
  if end == "hook":
    hook.end(sess)
    sess.close()
  elif end == "close":
    sess.close()
    hook.end(sess)
  else:
    del sess
    gc.collect()
  test_util.assert_no_stage_thread()


def test_closing_wakes_a_step_that_waits(target):
  record = tf.staged(tf.FIFOQueue(1, [tf.int64]).dequeue(), name="grpc_step")
  sess = tf.Session(target)
  hook = tf.make_prefetch_hook()
  hook.after_create_session(sess)
  begins = threading.Event()
  raised = []

  def step():
    begins.set()
    try:
      sess.run(record)
    except (RuntimeError, tf.errors.OpError) as error:
      raised.append(error)

  thread = threading.Thread(target=step)
  thread.start()
  begins.wait()
  sess.close()
  thread.join()
  hook.end(sess)
  assert raised


def test_records_left_in_a_buffer_are_released_with_their_session(target):
  source = test_util.Source()
  record = tf.staged(source.tensor(), capacity=2, name="grpc_left")
  size = tf.get_default_graph().get_tensor_by_name("grpc_left/TensorBufferSize:0")
  with tf.Session(target) as sess, tf.make_prefetch_hook().running(sess):
    assert sess.run(record) == 0
    source.wait_until_asked(4)
    assert sess.run(size) == 2
  for _ in range(_MAX_SESSIONS):
    with tf.Session(target) as sess:
      left = sess.run(size)
    if not left:
      break
  assert not left


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("local", [True, False], ids=["local", "grpc"])
def test_a_stage_restarts_with_its_iterator(target, local, threads):
  name = f"grpc_restart_{local}_{threads}"
  epoch = tf.placeholder(tf.int64, [])
  dataset = tf.data.Dataset.range(1000 * epoch, 1000 * epoch + 50)
  iterator = tf.data.Iterator.from_structure(tf.int64, [])
  initializer = iterator.make_initializer(dataset)
  staged = tf.staged(iterator.get_next(), num_threads=threads, name=name, capacity=3)
  with tf.Session("" if local else target) as sess:
    sess.run(initializer, {epoch: 0})
    with tf.make_prefetch_hook().running(sess):
      for number in range(0, 20, 2):
        assert sorted(test_util.drain(sess, staged)) == list(range(1000 * number, 1000 * number + 50))
        # The next restart comes in the middle of this data.
        sess.run(initializer, {epoch: number + 1})
        assert all(1000 <= sess.run(staged) - 1000 * number < 2000 for _ in range(10))
        sess.run(initializer, {epoch: number + 2})


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("local", [True, False], ids=["local", "grpc"])
def test_a_chain_of_stages_restarts_with_the_iterator_before_it(target, local, threads):
  name = f"grpc_chain_{local}_{threads}"
  epoch = tf.placeholder(tf.int64, [])
  iterator = tf.data.Iterator.from_structure(tf.int64, [])
  initializer = iterator.make_initializer(tf.data.Dataset.range(1000 * epoch, 1000 * epoch + 50))
  record = iterator.get_next()
  # The order of the names differs from the order of the stages.
  for number in (2, 3, 1):
    record = tf.staged(tf.identity(record), num_threads=threads, name=f"{name}_{number}", capacity=3)
  with tf.Session("" if local else target) as sess:
    sess.run(initializer, {epoch: 0})
    with tf.make_prefetch_hook().running(sess):
      for number in range(0, 10, 2):
        assert sorted(test_util.drain(sess, record)) == list(range(1000 * number, 1000 * number + 50))
        sess.run(initializer, {epoch: number + 1})
        assert all(1000 <= sess.run(record) - 1000 * number < 2000 for _ in range(10))
        sess.run(initializer, {epoch: number + 2})
