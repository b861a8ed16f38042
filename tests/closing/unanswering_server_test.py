# SPDX-License-Identifier: Apache-2.0
"""A session whose server does not answer keeps only its own threads waiting, and never the end of the program."""

import inspect
import threading

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import server_proxy
from tensorflow_staging.python.testing import test_util

_LIMIT_SECONDS = 5

# A server cannot be stopped, so all tests share one. The buffers of one test must not be those of another, so
# each test has its own stage name.
_server = None


@pytest.fixture
def proxy():
  """Stands before a server in this process."""
  global _server
  _server = _server or tf.train.Server.create_local_server()
  with server_proxy.ServerProxy(_server.target) as new_proxy:
    yield new_proxy


class _Call(threading.Thread):
  """Calls a function in a thread of its own."""

  def __init__(self, function, *args):
    super().__init__(daemon=True)
    self._function = function
    self._args = args
    self.error = None
    self.start()

  def run(self):
    try:
      self._function(*self._args)
    except Exception as error:
      self.error = error

  def ends_in_time(self) -> bool:
    self.join(_LIMIT_SECONDS)
    return not self.is_alive()


def _start_without_answer(hook, sess, proxy) -> _Call:
  """Begins to start the stages of a session, and returns once the start waits for the server."""
  proxy.hold()
  starting = _Call(hook.after_create_session, sess)
  proxy.wait_until_held_back()
  return starting


def test_other_sessions_start_run_and_stop_while_one_waits_for_its_server(proxy):
  sessions = []

  def numbers(sess):
    sessions.append(sess)
    yield from ([number] for number in range(3))

  number = tf.placeholder(tf.int64, [])
  record = tf.staged(number, feed_list=[number], feed_generator=numbers, name="unanswering_others")
  hook = tf.make_prefetch_hook()

  def use(sess):
    with hook.running(sess):
      assert test_util.drain(sess, record) == [0, 1, 2]

  with tf.Session(proxy.target) as remote, tf.Session() as local:
    starting = _start_without_answer(hook, remote, proxy)
    using = _Call(use, local)
    in_time = using.ends_in_time()
    still_waits = starting.is_alive()
    proxy.release()
    for call in (starting, using):
      call.join()
      assert call.error is None
    assert test_util.drain(remote, record) == [0, 1, 2]
    hook.end(remote)
  assert in_time and still_waits
  # Each start found its own session.
  assert sessions == [local, remote]


def test_stopping_does_not_wait_for_a_start(proxy):
  record = tf.staged(tf.constant(1), name="unanswering_start")
  hook = tf.make_prefetch_hook()
  with tf.Session(proxy.target) as sess:
    starting = _start_without_answer(hook, sess, proxy)
    ending = _Call(hook.end, sess)
    in_time = ending.ends_in_time()
    still_waits = starting.is_alive()
    proxy.release()
    starting.join()
    ending.join()
    assert in_time and still_waits
    assert isinstance(starting.error, tf.errors.CancelledError)
    assert "stopped before they had started" in str(starting.error)
    test_util.assert_no_stage_thread()
    with hook.running(sess):
      assert sess.run(record) == 1


def _end(hook, sess, coord):
  hook.end(sess)


def _stop(hook, sess, coord):
  coord.request_stop()
  coord.join(stop_grace_period_secs=test_util.WAIT_SECONDS)


@pytest.mark.parametrize("way", [_end, _stop])
def test_stopping_does_not_wait_long_for_a_server_that_no_longer_answers(proxy, way):
  source = test_util.Source()
  record = tf.staged(source.tensor(), capacity=2, name="unanswering" + way.__name__)
  hook, coord = tf.make_prefetch_hook(), tf.train.Coordinator()
  with tf.Session(proxy.target) as sess:
    hook.after_create_session(sess, coord)
    assert sess.run(record) == 0
    # The producer waits for room.
    source.wait_until_asked(4)
    proxy.hold()
    ending = _Call(way, hook, sess, coord)
    in_time = ending.ends_in_time()
    # The next start waits until the stages have stopped, which needs an answer of the server.
    again = _Call(hook.after_create_session, sess)
    proxy.release()
    ending.join()
    again.join()
    assert again.error is None
    taken = [sess.run(record) for _ in range(10)]
    # The record that waited for room was given up with its run.
    assert taken[:2] == [1, 2] and taken == sorted(taken)
    hook.end(sess)
  assert in_time


# The beginning of each program: a local session and one of a server that can stop answering, with two stages each.
_HEAD = inspect.getsource(server_proxy) + """
import atexit
import faulthandler
import time

# A program that hangs ends anyway, and fails.
faulthandler.dump_traceback_later(100, exit=True)

def report():
  print("in time", time.monotonic() - begin < 5, flush=True)

# Registered before TensorFlow registers anything, so that it is called last.
atexit.register(report)

import tensorflow as tf

proxy = ServerProxy(tf.train.Server.create_local_server().target)
records = [tf.staged(tf.constant(1)), tf.staged(tf.FIFOQueue(1, [tf.int64]).dequeue())]
hook = tf.make_prefetch_hook()
local, remote = tf.Session(), tf.Session(proxy.target)

def call(function, *args):
  threading.Thread(target=function, args=args, daemon=True).start()
"""


def test_the_interpreter_exits_while_a_start_waits(tmp_path):
  output = test_util.run_program(_HEAD + """
hook.after_create_session(local)
proxy.hold()
call(hook.after_create_session, remote)
proxy.wait_until_held_back()
begin = time.monotonic()
""", tmp_path)
  assert output == "in time True\n"


def test_the_interpreter_exits_while_stages_run_in_a_server_that_no_longer_answers(tmp_path):
  output = test_util.run_program(_HEAD + """
hook.after_create_session(local)
hook.after_create_session(remote)
remote.run(records[0])
proxy.hold()
# The interpreter closes a session that it deletes, which waits for the server as on the stock wheel. It does not
# delete what a daemon thread refers to.
call(lambda sess: threading.Event().wait(), remote)
begin = time.monotonic()
""", tmp_path)
  assert output == "in time True\n"


def test_a_closing_session_does_not_stop_python(tmp_path):
  output = test_util.run_program(_HEAD + """
from tensorflow_staging.python.pywrap import _pywrap_staging

ask = _pywrap_staging.runners_of_session
asks = threading.Event()

def note_and_ask(*args):
  asks.set()
  return ask(*args)

def start():
  try:
    hook.after_create_session(remote)
  except ValueError as error:
    print(error)

with hook.running(remote):
  remote.run(records[0])
proxy.hold()
closing = threading.Thread(target=remote.close)
closing.start()
proxy.wait_until_held_back()
_pywrap_staging.runners_of_session = note_and_ask
starting = threading.Thread(target=start)
starting.start()
asks.wait()
# Each run lets the other threads run Python.
three = tf.constant(3)
print(sum(local.run(three) for _ in range(100)))
proxy.release()
closing.join()
starting.join()
begin = time.monotonic()
""", tmp_path)
  assert output == "300\nsession is closed.\nin time True\n"
