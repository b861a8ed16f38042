# SPDX-License-Identifier: Apache-2.0
"""The threads of stages: they keep the order of the data, their number is chosen, and they end."""

import contextlib
import itertools
import subprocess
import sys
import time
import weakref

import cases
import compared_loops as loops
import tensorflow as tf


def case_several_threads_keep_the_order_of_the_data():
  total = tf.Variable(0.0)

  @tf.function
  def step(iterator):
    number = tf.strings.to_number(next(iterator))
    total.assign_add(number)
    return number

  wrapped = tf.staging.ahead(step, capacity=2, num_threads=3)
  for size in list(range(1, 12)) * 5:
    got = loops.drain(wrapped, iter(loops.numbers([str(i) for i in range(size)])))
    assert got == [float(i) for i in range(size)], (size, got)


def case_several_threads_draw_and_fail_as_one():
  def program(wrap):
    generator = tf.random.Generator.from_seed(3)
    total = tf.Variable(0.0)

    @tf.function
    def step(iterator):
      text = next(iterator)
      # Records take as long as their numbers say, so those of several threads are ready in another order.
      size = tf.strings.to_number(text, tf.int32)
      noise = generator.uniform([size, 50])
      total.assign_add(tf.reduce_sum(noise))
      return size, tf.reduce_sum(tf.linalg.matmul(noise, noise, transpose_a=True))

    step, values = wrap(step), []
    for epoch in range(3):
      iterator = iter(loops.numbers([str(i * 331 % 997 + 1) if i % 5 != 3 else f"x{i}" for i in range(40)]))
      for turn in itertools.count():
        try:
          if turn % 13 == 12:
            values.append(next(iterator).numpy())
          values.append([value.numpy() for value in step(iterator)])
        except tf.errors.InvalidArgumentError:
          values.append("failed")
        except (tf.errors.OutOfRangeError, StopIteration):
          break
        if epoch == 1 and turn == 20:
          break
      values.append(generator.normal([2]).numpy().tolist())
    return values, step

  loops.compare(program, num_threads=3)


def case_the_number_of_threads_is_chosen_over_several_iterators():
  total = tf.Variable(0, dtype=tf.int64)

  def slow(number):
    time.sleep(0.02)
    return number

  @tf.function
  def step(iterator):
    number = tf.numpy_function(slow, [next(iterator)], tf.int64, stateful=False)
    total.assign_add(number)
    return number

  wrapped = tf.staging.ahead(step, num_threads=tf.data.AUTOTUNE)
  for size in (3, 20, 200):
    got = loops.drain(wrapped, iter(tf.data.Dataset.range(size)))
    assert got == list(range(size)), got
  iterator = iter(tf.data.Dataset.range(10**6))
  wrapped(iterator)
  stats, = tf.staging.stats(wrapped)
  # The third one has needed more, and the fourth one begins with them.
  assert stats.num_threads > 1 and stats.tunes_threads, stats
  assert stats.keeps_order and "any order" not in str(stats), stats


def case_the_capacity_is_chosen_over_several_iterators():
  total = tf.Variable(0, dtype=tf.int64)
  # By turns many records come at once, and none for the time of eight steps, however long a busy machine makes a step.
  pause = 0.16

  def slow_at_times(number):
    time.sleep(pause if number % 16 == 0 else 0)
    return number * 2

  @tf.function
  def step(iterator):
    number = tf.numpy_function(slow_at_times, [next(iterator)], tf.int64, stateful=False)
    total.assign_add(number)
    return number

  wrapped = tf.staging.ahead(step)
  capacity = 0
  for _ in range(20):
    iterator = iter(tf.data.Dataset.range(64))
    wrapped(iterator)
    stats, = tf.staging.stats(wrapped)
    assert stats.capacity >= capacity, (stats, capacity)  # It begins with what was found.
    begin = time.monotonic()
    for _ in range(63):
      wrapped(iterator)
      time.sleep(0.02)
    seconds = (time.monotonic() - begin) / 63
    stats, = tf.staging.stats(wrapped)
    capacity = stats.capacity
    if capacity > 4:
      break
    # Not the median: on a busy machine, a few steps that take long use up the pause. Those that have waited for it add
    # at most as much as a step takes.
    pause = max(0.16, 8 * seconds)
  assert capacity > 4, stats
  iterator = iter(tf.data.Dataset.range(64))
  wrapped(iterator)
  stats, = tf.staging.stats(wrapped)
  assert stats.capacity == capacity, (stats, capacity)


def case_threads_end_with_their_iterator_and_their_step():
  @tf.function
  def tested_step(iterator):
    return tf.strings.to_number(next(iterator))

  wrapped = tf.staging.ahead(tested_step, capacity=2, num_threads=1)
  endless = loops.numbers(["1", "2"]).repeat()
  one, two = iter(endless), iter(endless)
  wrapped(one)
  wrapped(two)
  assert len(loops.threads_of_stages()) == 2, loops.threads_of_stages()
  stages = [weakref.ref(stage) for stage in wrapped.stages()]
  assert loops.count_of(wrapped) == 2
  del one
  loops.wait_until(lambda: loops.count_of(wrapped) == 1)
  wrapped = None
  loops.wait_until(lambda: all(stage() is None for stage in stages))
  loops.wait_until(lambda: not loops.threads_of_stages())
  assert next(two).numpy() in (b"1", b"2")


def case_iterators_do_not_stay():
  @tf.function
  def tested_step(iterator):
    return tf.strings.to_number(next(iterator))

  wrapped = tf.staging.ahead(tested_step, capacity=2)
  iterators = []
  for _ in range(5):
    dataset = tf.data.Dataset.range(10**6).map(lambda i: tf.numpy_function(str, [i], tf.string))
    iterator = iter(dataset)
    iterators.append(weakref.ref(iterator))
    assert [float(wrapped(iterator)) for _ in range(3)] == [0.0, 1.0, 2.0]
    del iterator, dataset
    # Without the garbage collector.
    assert iterators[-1]() is None
    assert loops.count_of(wrapped) == 0
  # The system lists a thread for a moment after it has ended.
  loops.wait_until(lambda: not loops.threads_of_stages())


def case_a_stage_ends_together_with_its_python_generator():
  program = """
import tensorflow as tf
total = tf.Variable(0, dtype=tf.int64)
@tf.function
def step(iterator):
  total.assign_add(next(iterator) * 2)
  tf.debugging.assert_negative(total)
step = tf.staging.ahead(step, capacity=3)
data = tf.data.Dataset.from_generator(lambda: iter(range(1000)), output_signature=tf.TensorSpec([], tf.int64))
try:
  step(iter(data))
except tf.errors.InvalidArgumentError:
  pass
"""
  subprocess.run([sys.executable, "-c", program], timeout=60, check=True, capture_output=True)


def case_programs_end_at_once():
  program = """
import tensorflow as tf, os, signal, sys, time, types
@tf.function
def step(iterator):
  return tf.strings.to_number(next(iterator))
step = tf.staging.ahead(step, capacity=2)
def slow(i, seconds={seconds}):
  time.sleep(seconds if i else 0.05)
  return str(int(i))
data = tf.data.Dataset.range(10**9).map(lambda i: tf.py_function(slow, [i], tf.string))
{end}
"""
  read = "iterator = iter(data)\nstep(iterator)\n"
  # A shell that runs the tests in the background may ignore SIGINT, and programs inherit that.
  interrupted = "signal.signal(signal.SIGINT, signal.default_int_handler); os.kill(os.getpid(), signal.SIGINT)"
  # The interpreter deletes what a module has, while the dataset's own prefetch is in its Python function.
  deleted = """
sys.modules["m"] = module = types.ModuleType("m")
module.iterator = iter(data.prefetch(8))
module.iterator.step = step
step(module.iterator)
del module, step
"""
  ends = {
      (0.05, read): {0},
      (0.05, f"{read}raise SystemExit(3)"): {3},
      (0.05, f"{read}1 / 0"): {1},
      (0.05, f"{read}{interrupted}; step(iterator)"): {1, -2},
      (0.5, deleted): {0},
      (1000, deleted): {0},
  }
  with contextlib.ExitStack() as stack:
    # Together: most of their time is the import.
    running = {}
    for seconds, end in ends:
      source = program.format(seconds=seconds, end=end)
      running[seconds, end] = stack.enter_context(subprocess.Popen(
          [sys.executable, "-c", source], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
    for process in running.values():
      stack.callback(process.kill)
    for end, process in running.items():
      _, stderr = process.communicate(timeout=100)
      assert process.returncode in ends[end], (end, process.returncode, stderr[-2000:])


if __name__ == "__main__":
  cases.main(globals())
