# SPDX-License-Identifier: Apache-2.0
"""SIGINT ends a program with stages within seconds, whichever thread waits."""

import inspect

import pytest

from tensorflow_staging.python.testing import server_proxy

# The beginning of each program: sends SIGINT while a thread waits, and measures the time from then on.
_HEAD = """
import os
import pathlib
import signal
import threading
import time

import tensorflow as tf

LIMIT_SECONDS = 5

# A shell that runs the tests in the background may ignore SIGINT, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

def interrupt():
  global interrupted
  interrupted = time.monotonic()
  os.kill(os.getpid(), signal.SIGINT)

def in_time():
  return time.monotonic() - interrupted < LIMIT_SECONDS

def interrupt_when_the_main_thread_waits():
  '''Sends SIGINT once the kernel has reported the main thread asleep 200 times in a row.'''
  def watch():
    asleep = 0
    while asleep < 200:
      state = pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()[0]
      asleep = asleep + 1 if state == "S" else 0
      os.sched_yield()
    interrupt()
  threading.Thread(target=watch).start()

def hanging_input():
  '''A queue without an enqueue op.'''
  return tf.FIFOQueue(1, [tf.int64]).dequeue()

def wakeup_fd():
  return signal.set_wakeup_fd(-1)
"""


@pytest.fixture
def run(run_forked, tmp_path):
  """A function that runs a program after the common beginning, and returns the lines that it has printed."""
  return lambda program: run_forked(_HEAD + program, tmp_path).splitlines()


_PRODUCER_WAITS = {
    "stage": "record = tf.staged(tf.constant(1), num_threads=2)",
    "loop": "sess.run(record); interrupt(); threading.Event().wait()",
}
_CONSUMER_WAITS = {
    "stage": "record = tf.staged(hanging_input())",
    "loop": """threading.Thread(target=lambda: sess._tf_sess().run(record), daemon=True).start()
    interrupt()
    threading.Event().wait()""",
}
_MAIN_THREAD_WAITS_FOR_A_RECORD = {
    "stage": "record = tf.staged(hanging_input(), num_threads=8)",
    "loop": "interrupt_when_the_main_thread_waits(); sess.run(record)",
}
_MAIN_THREAD_WAITS_FOR_SEVERAL = {
    "stage": "record = [tf.staged(tf.staged(hanging_input())), tf.staged(hanging_input())]",
    "loop": "interrupt_when_the_main_thread_waits(); sess.run(record)",
}
_MAIN_THREAD_WAITS_IN_A_CALLABLE = {
    "stage": "record = tf.staged(hanging_input())",
    "loop": "interrupt_when_the_main_thread_waits(); sess._tf_sess().make_callable(record)()",
}
_MAIN_THREAD_WAITS_IN_A_CALLABLE_WITH_OPTIONS = {
    "stage": "record = tf.staged(hanging_input())",
    "loop": """from tensorflow.core.protobuf import config_pb2
    options = config_pb2.CallableOptions(fetch=[record.name])
    step = sess._tf_sess()._make_callable_from_options(options)
    interrupt_when_the_main_thread_waits(); step()""",
}


@pytest.mark.parametrize(
    "parts", [
        _PRODUCER_WAITS, _CONSUMER_WAITS, _MAIN_THREAD_WAITS_FOR_A_RECORD,
        _MAIN_THREAD_WAITS_FOR_SEVERAL, _MAIN_THREAD_WAITS_IN_A_CALLABLE,
        _MAIN_THREAD_WAITS_IN_A_CALLABLE_WITH_OPTIONS
    ],
    ids=["producer", "consumer", "main thread", "several stages", "callable", "with options"])
def test_sigint(run, parts):
  output = run("""
{stage}
try:
  with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
    {loop}
except KeyboardInterrupt:
  print("interrupted", in_time())
""".format(**parts))
  assert output == ["interrupted True"]


def test_sigint_in_a_plain_session_that_goes_on_afterwards(run):
  output = run("""
queue = tf.FIFOQueue(1, [tf.int64])
fill = queue.enqueue(tf.constant(7, tf.int64))
record = tf.staged(queue.dequeue())
hook = tf.make_prefetch_hook()
with tf.Session() as sess:
  try:
    with hook.running(sess):
      interrupt_when_the_main_thread_waits()
      sess.run(record)
  except KeyboardInterrupt:
    print("interrupted", in_time())
with tf.Session() as sess, hook.running(sess):
  sess.run(fill)
  print(sess.run(record))
""")
  assert output == ["interrupted True", "7"]


def test_sigint_while_python_code_of_the_stage_hangs(run):
  output = run("""
def values():
  threading.Event().wait()
  yield [1]

number = tf.placeholder(tf.int64, [])
record = tf.staged(number, feed_list=[number], feed_generator=values)
try:
  with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
    try:
      interrupt_when_the_main_thread_waits()
      sess.run(record)
    except KeyboardInterrupt:
      print("in the session", in_time())
      raise
except KeyboardInterrupt:
  print("after the session", in_time())
""")
  assert output == ["in the session True", "after the session True"]


def test_sigint_while_another_session_waits_for_its_server(run):
  output = run(inspect.getsource(server_proxy) + """
record = tf.staged(hanging_input())
hook = tf.make_prefetch_hook()
proxy = ServerProxy(tf.train.Server.create_local_server().target)
proxy.hold()
with tf.Session() as sess:
  try:
    with hook.running(sess):
      remote = tf.Session(proxy.target)
      threading.Thread(target=hook.after_create_session, args=[remote], daemon=True).start()
      proxy.wait_until_held_back()
      interrupt_when_the_main_thread_waits()
      sess.run(record)
  except KeyboardInterrupt:
    print("interrupted", in_time())
""")
  assert output == ["interrupted True"]


def test_the_stages_go_on_when_the_main_thread_handles_sigint_itself(run):
  output = run("""
dataset = tf.data.Dataset.range(1000)
record = tf.staged(tf.data.make_one_shot_iterator(dataset).get_next())
with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
  taken = [sess.run(record)]
  try:
    interrupt()
    threading.Event().wait()
  except KeyboardInterrupt:
    # The main thread has handled the signal, so the watch must not stop any stage from now on.
    watch, = [thread for thread in threading.enumerate() if thread.name == "staging_interrupt"]
    watch.join(LIMIT_SECONDS)
    assert watch.is_alive()
  while len(taken) < 1000:
    taken.append(sess.run(record))
print(taken == list(range(1000)))
""")
  assert output == ["True"]


@pytest.mark.alone
def test_a_handler_of_the_program_decides_itself(run):
  output = run("""
handled = []
signal.signal(signal.SIGINT, lambda *_: handled.append(True))
record = tf.staged(hanging_input())
with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
  interrupt_when_the_main_thread_waits()
  try:
    sess.run(record, options=tf.RunOptions(timeout_in_ms=4000))
  except tf.errors.DeadlineExceededError:
    print("its own limit ended the step", handled)
""")
  assert output == ["its own limit ended the step [True]"]


def test_the_wakeup_fd_of_the_program_stays(run):
  output = run("""
record = tf.staged(tf.constant(1))
mine, later = os.pipe2(os.O_NONBLOCK)[1], os.pipe2(os.O_NONBLOCK)[1]
hook = tf.make_prefetch_hook()
with tf.Session() as sess:
  signal.set_wakeup_fd(mine)
  with hook.running(sess):
    assert wakeup_fd() == mine
  with hook.running(sess):
    assert wakeup_fd() not in (-1, mine)
    signal.set_wakeup_fd(later)
  print(wakeup_fd() == later)
  with hook.running(sess):
    pass
  print(wakeup_fd() == -1)
""")
  assert output == ["True", "True"]


@pytest.mark.parametrize(
    "last_statements", ["hook.end(sess)", "sess.close()", "coord.request_stop(); coord.join()"])
def test_no_thread_is_left(run, last_statements):
  output = run(f"""
def watches():
  return [thread for thread in threading.enumerate() if thread.name == "staging_interrupt"]

tf.staged(tf.constant(1))
hook = tf.make_prefetch_hook()
coord = tf.train.Coordinator()
with tf.Session() as sess:
  for _ in range(3):
    hook.after_create_session(sess)
  hook.after_create_session(sess, coord)
  watch, = watches()
  {last_statements}
  watch.join(LIMIT_SECONDS)
  print(watches())
""")
  assert output == ["[]"]


def test_a_stage_that_another_thread_starts_watches_nothing(run):
  # Python lets only the main thread set the wakeup fd.
  output = run("""
record = tf.staged(tf.constant(1))
hook = tf.make_prefetch_hook()
with tf.Session() as sess:
  starting = threading.Thread(target=hook.after_create_session, args=[sess])
  starting.start()
  starting.join()
  print(sess.run(record), wakeup_fd())
  hook.end(sess)
""")
  assert output == ["1 -1"]


def test_a_forked_process_does_not_share_the_watch(run):
  output = run("""
record = tf.staged(tf.constant(1))
with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
  child = os.fork()
  if child == 0:
    os._exit(wakeup_fd() != -1)
  print(os.waitpid(child, 0)[1], wakeup_fd() != -1, sess.run(record))
""")
  assert output == ["0 True 1"]
