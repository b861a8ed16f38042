# SPDX-License-Identifier: Apache-2.0
"""A signal handler may close a session whatever line of ours it interrupts: it does not hang, and the stages stop."""

import pytest

# The program's main thread is interrupted at one line after the other of the files that start and stop stages.
_HEAD = """
import faulthandler
import pathlib
import signal
import sys
import threading
import time

import tensorflow as tf

from tensorflow_staging.python.session import all_sessions

# What hangs says where.
faulthandler.dump_traceback_later(100, exit=True)

LIMIT_SECONDS = 5
FOLDERS = ("session", "automatic", "stages", "ahead")

class Interrupted(Exception):
  '''What a handler raises that ends the program.'''

def lines_of(work):
  '''Returns the lines of our files that the main thread executes in `work`, each once, in their order.'''
  lines = {}
  run_with_trace(work, lambda line: lines.setdefault(line))
  return list(lines)

def run_with_trace(work, at_line):
  def trace(frame, event, argument):
    path = pathlib.Path(frame.f_code.co_filename)
    if path.parent.name not in FOLDERS or "tensorflow_staging" not in path.parts:
      return None
    if event == "line":
      at_line((path.name, frame.f_lineno))
    return trace
  sys.settrace(trace)
  try:
    work()
  finally:
    sys.settrace(None)

def interrupted_at(line, work, handle):
  '''Runs `work` and calls `handle` in a signal handler before a line is executed for the first time.'''
  is_left = [True]
  def at_line(current):
    if current == line and is_left:
      is_left.clear()
      signal.raise_signal(signal.SIGUSR1)
  signal.signal(signal.SIGUSR1, lambda *_: handle())
  began = time.monotonic()
  try:
    run_with_trace(work, at_line)
  except (tf.errors.OpError, RuntimeError, ValueError, Interrupted):
    pass  # The handler has closed the session.
  assert time.monotonic() - began < LIMIT_SECONDS, line

def watches():
  return [thread for thread in threading.enumerate() if thread.name == "staging_interrupt"]
"""

# What a handler does with the session that the program trains in.
_HANDLERS = {
    "closes": "sess.close()",
    "joins the coordinator": "coord.request_stop(); coord.join()",
    "exits": "hook.end(sess); raise Interrupted",
    "starts and ends": "hook.after_create_session(other); hook.end(other); hook.end(sess)",
}


@pytest.mark.alone
@pytest.mark.parametrize("handler", _HANDLERS.values(), ids=_HANDLERS)
def test_a_handler_that_ends_the_stages(run_forked, tmp_path, handler):
  output = run_forked(_HEAD + f"""
record = tf.staged(tf.staged(tf.constant(1)))
hook = tf.make_prefetch_hook()

def train():
  hook.after_create_session(sess, coord)
  hook.after_create_session(sess, coord)
  sess.run(record)
  hook.end(sess)
  with hook.running(sess):
    sess.run(record)

def handle():
  {handler}

def new_session():
  global sess, coord
  sess, coord = tf.Session(), tf.train.Coordinator()

other = tf.Session()
new_session()
lines = lines_of(train)
for line in lines:
  new_session()
  interrupted_at(line, train, handle)
  hook.end(sess)
  assert not all_sessions._any_running(), line
  sess.close()
coord.request_stop()
for watch in watches():
  watch.join(LIMIT_SECONDS)
print(len(lines) > 100, watches(), signal.set_wakeup_fd(-1))
""", tmp_path)
  assert output == "True [] -1\n"


@pytest.mark.alone
def test_a_handler_that_closes_a_session_whose_program_knows_of_no_stage(run_forked, tmp_path):
  output = run_forked("""
import os
os.environ["TF_STAGING_SMART_STAGE"] = "1"
""" + _HEAD + """
number = tf.data.make_one_shot_iterator(tf.data.Dataset.range(10**9)).get_next() * 1
step = number + tf.get_variable("zero", initializer=tf.zeros([], tf.int64), use_resource=True)
initializer = tf.global_variables_initializer()

def train():
  sess.run(initializer)
  sess.run(step)
  sess.run(step)
  sess.close()

sess = tf.Session()
lines = lines_of(train)
for line in lines:
  sess = tf.Session()
  interrupted_at(line, train, lambda: sess.close())
  assert not all_sessions._any_running(), line
print(len(lines) > 100)
""", tmp_path)
  assert output == "True\n"


@pytest.mark.alone
@pytest.mark.parametrize(
    "handler", ["step.stop()", "taken.append(int(step(iterator)))"], ids=["stops", "takes a step"])
def test_a_handler_that_uses_a_step_of_tensorflow_2(run_forked, tmp_path, handler):
  output = run_forked(_HEAD + f"""
tf.get_logger().setLevel("ERROR")
weight = tf.Variable(0, dtype=tf.int64)

@tf.function
def function(iterator):
  number = next(iterator)
  weight.assign_add(tf.cast(tf.strings.length(tf.strings.as_string(number)), tf.int64))
  return number

def numbers():
  return iter(tf.data.Dataset.range(6))

def train():
  try:
    while True:
      taken.append(int(step(iterator)))
  except tf.errors.OutOfRangeError:
    step.stop()

def handle():
  try:
    {handler}
  except tf.errors.OutOfRangeError:
    pass

def begin_anew():
  global step, iterator, taken
  step, iterator, taken = tf.staging.ahead(function, capacity=2), numbers(), []

begin_anew()
lines = lines_of(train)
for line in lines:
  begin_anew()
  interrupted_at(line, train, handle)
  train()
  assert sorted(taken) == list(range(6)), (line, taken)
print(len(lines) > 100)
""", tmp_path, api_version="2")
  assert output == "True\n"
