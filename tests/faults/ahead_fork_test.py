# SPDX-License-Identifier: Apache-2.0
"""A process of TensorFlow 2 with stages is forked: nothing in the child waits for the threads that it lacks."""

import pytest

_HEAD = """
import atexit
import gc
import multiprocessing
import os
import sys
import threading
import time

import tensorflow as tf

LIMIT_SECONDS = 5
# Waiting for a thread of a stage takes longer.
AT_ONCE_SECONDS = 1.4

def new_step():
  weight = tf.Variable(0, dtype=tf.int64)

  @tf.function
  def step(iterator):
    number = next(iterator)
    weight.assign_add(tf.cast(tf.strings.length(tf.strings.as_string(number)), tf.int64))
    return number

  return tf.staging.ahead(step, capacity=2)

def numbers():
  return iter(tf.data.Dataset.range(100))

def await_full_buffer():
  deadline = time.monotonic() + 30
  while tf.staging.stats(step)[0].waiting_puts == 0:
    assert time.monotonic() < deadline
    time.sleep(0.001)

def in_child(work):
  '''Returns what `work` returns in a child process, or the error that it raises there.'''
  reading, writing = os.pipe()
  child = os.fork()
  if child == 0:
    began = time.monotonic()
    try:
      result = str(work())
    except Exception as error:
      result = f"{type(error).__name__}: {error}"
    if time.monotonic() - began > AT_ONCE_SECONDS:
      result = "waited"
    os.write(writing, result.encode())
    os._exit(0)
  os.close(writing)
  deadline = time.monotonic() + LIMIT_SECONDS
  while not os.waitpid(child, os.WNOHANG)[0]:
    if time.monotonic() > deadline:
      os.kill(child, 9)
      os.waitpid(child, 0)
      return "hangs"
    time.sleep(0.01)
  with os.fdopen(reading) as pipe:
    return pipe.read()
"""
_NO_STEP = "RuntimeError: step cannot run in this forked process: "
_NO_READ = "RuntimeError: The iterator cannot be used in this forked process: "


@pytest.fixture
def run(run_forked, tmp_path):
  """A function that runs a program after the common beginning, and returns the lines that it has printed."""
  return lambda program: run_forked(_HEAD + program, tmp_path, api_version="2").splitlines()


_USES = {
    "a step": ("step(iterator)", _NO_STEP),
    "a step with a new iterator": ("step(numbers())", _NO_STEP),
    "a new step": ("new_step()(numbers())", _NO_STEP),
    "a read": ("next(iterator)", _NO_READ),
    "an optional read": ("iterator.get_next_as_optional()", _NO_READ),
    "a checkpoint": ("tf.train.Checkpoint(iterator=iterator).write('checkpoint')", _NO_READ),
    "a single op": ("int(tf.constant(1) + 1)", "2"),
    "a step that runs eagerly": ("tf.config.run_functions_eagerly(True) or int(step(numbers()))", "0"),
    "statistics": ("list(tf.staging.stats(step))", "[]"),
    "an explanation": ("str(tf.staging.explain(step))[:6]", "'step'"),
    "a stop": ("step.stop()", "None"),
    "the end of the iterator": ("globals().pop('iterator') and gc.collect() and None", "None"),
    "the end of all": ("[globals().pop('step'), globals().pop('iterator')].clear() or gc.collect() and None", "None"),
    "the end of the program": ("atexit._run_exitfuncs()", "None"),
}


@pytest.mark.alone
def test_nothing_waits_while_a_producer_waits_for_room(run):
  output = run(f"""
step, iterator = new_step(), numbers()
print(int(step(iterator)))
await_full_buffer()
for use in {[use for use, _ in _USES.values()]}:
  print(in_child(lambda: eval(use)))
process = multiprocessing.get_context("fork").Process(target=gc.collect)
process.start()
process.join(LIMIT_SECONDS)
print(process.exitcode, [int(step(iterator)) for _ in range(5)])
""")
  assert output[0] == "0"
  assert output[-1] == "0 [1, 2, 3, 4, 5]"
  for use, line, (_, expected) in zip(_USES, output[1:-1], _USES.values()):
    assert line.startswith(expected), (use, line)


@pytest.mark.alone
def test_nothing_waits_while_another_thread_traces_the_step(run):
  output = run("""
traces, goes_on = threading.Event(), threading.Event()

@tf.function
def step(iterator):
  number = next(iterator)
  traces.set()
  goes_on.wait()
  return tf.strings.as_string(number)

step = tf.staging.ahead(step)
iterator = numbers()
called = []
thread = threading.Thread(target=lambda: called.append(step(iterator).numpy()))
thread.start()
traces.wait()
print(in_child(lambda: step(iterator)))
goes_on.set()
thread.join()
print(called)
""")
  assert output[0].startswith(_NO_STEP)
  assert output[1:] == ["[b'0']"]


@pytest.mark.alone
def test_a_child_has_stages_of_its_own_if_it_is_forked_before_tensorflow_runs(run):
  output = run("""
def five_steps():
  global step
  step, iterator = new_step(), numbers()
  return [int(step(iterator)) for _ in range(5)], len(tf.staging.stats(step)), step.why_not

AT_ONCE_SECONDS = LIMIT_SECONDS
print(in_child(five_steps))
print(five_steps())
""")
  assert output == ["([0, 1, 2, 3, 4], 1, None)"] * 2


@pytest.mark.alone
def test_a_child_that_a_fit_forks_ends_at_once(run):
  output = run("""
class Forks(tf.keras.callbacks.Callback):
  def on_train_batch_end(self, batch, logs=None):
    if batch == 3:
      print(any(step.stages() for step in smart_stage.steps()), in_child(self.end))

  def end(self):
    del self.model
    smart_stage.on_train_end()
    gc.collect()
    atexit._run_exitfuncs()

words = tf.keras.Input((), dtype=tf.string)
prices = tf.keras.layers.Dense(1)(tf.keras.layers.Embedding(10, 4)(tf.keras.layers.Hashing(10)(words)))
model = tf.keras.Model(words, prices)
model.compile("sgd", "mse")
data = tf.data.Dataset.from_tensors((["a", "b"], [1.0, 2.0])).repeat(20)
smart_stage = tf.staging.SmartStage(capacity=2)
model.fit(data, epochs=2, verbose=0, callbacks=[smart_stage, Forks()])
print(int(model.optimizer.iterations))
""")
  assert output == ["True None", "True None", "40"]
