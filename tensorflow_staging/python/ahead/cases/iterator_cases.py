# SPDX-License-Identifier: Apache-2.0
"""Iterators that something else reads than the step of `tf.staging.ahead`: no element is lost; see ahead/ahead_test.py.

Everything that reads gets the element that it would get without a stage.
"""

import concurrent.futures
import gc
import tempfile
import time

import cases
import tensorflow as tf

_COUNT = 40


def _numbers():
  return iter(tf.data.Dataset.range(_COUNT))


def _step(weight):
  """Returns a step of which the string's length is computed ahead."""

  @tf.function
  def step(iterator):
    number = next(iterator)
    weight.assign_add(tf.cast(tf.strings.length(tf.strings.as_string(number)), tf.int64))
    return number

  return step


def _staged(**options):
  return tf.staging.ahead(_step(tf.Variable(0, dtype=tf.int64)), **{"capacity": 4, **options})


def _rest(step, iterator):
  """Calls the step until the data ends."""
  numbers = []
  try:
    while True:
      numbers.append(int(step(iterator)))
  except tf.errors.OutOfRangeError:
    return numbers


def _await_records(step, count=4):
  """Waits until the stage has made so many records ahead."""
  deadline = time.monotonic() + 20
  while tf.staging.stats(step)[0].records < count:
    assert time.monotonic() < deadline, tf.staging.stats(step)
    time.sleep(0.001)


def case_a_read_beside_the_step_gets_the_next_element():
  read = tf.function(lambda iterator: next(iterator))
  reads = [next, read, lambda iterator: iterator.get_next_as_optional().get_value()]
  for beside in reads:
    step, iterator = _staged(), _numbers()
    expected = iter(range(_COUNT))
    for _ in range(4):
      assert int(step(iterator)) == next(expected)
      _await_records(step)
      assert int(beside(iterator)) == next(expected)
      assert int(beside(iterator)) == next(expected)
    assert _rest(step, iterator) == list(expected)


def case_several_threads_read_each_element_once():
  step, iterator = _staged(num_threads=3), _numbers()
  numbers = []
  for _ in range(6):
    numbers += [int(step(iterator)), int(next(iterator))]
  numbers += _rest(step, iterator)
  assert sorted(numbers) == list(range(_COUNT)), numbers


def case_threads_call_several_steps_with_one_iterator():
  # A step that begins its stage ends that of the step that another thread is in.
  for _ in range(20):
    iterator = _numbers()
    with concurrent.futures.ThreadPoolExecutor() as pool:
      parts = [pool.submit(_rest, step, iterator) for step in (_staged(), _staged(), _staged(num_threads=2))]
    numbers = [number for part in parts for number in part.result()]
    assert sorted(numbers) == list(range(_COUNT)), numbers


def case_an_error_comes_where_its_element_is_read():
  def fails(number):
    with tf.control_dependencies([tf.debugging.assert_less(number, tf.constant(3, tf.int64))]):
      return tf.identity(number)

  @tf.function
  def checked(iterator):
    number = fails(next(iterator))
    weight.assign_add(tf.cast(tf.strings.length(tf.strings.as_string(number)), tf.int64))
    return number

  weight = tf.Variable(0, dtype=tf.int64)
  step, iterator = tf.staging.ahead(checked, capacity=4), _numbers()
  assert int(step(iterator)) == 0
  _await_records(step, 2)
  # 1, 2 and the error of 3 wait.
  assert [int(next(iterator)) for _ in range(3)] == [1, 2, 3]
  for _ in range(2):
    try:
      step(iterator)
      raise AssertionError("4 and 5 are no less than 3")
    except tf.errors.InvalidArgumentError:
      pass
  assert int(next(iterator)) == 6


def case_the_iterator_of_a_deleted_step_goes_on():
  step, iterator = _staged(), _numbers()
  assert [int(step(iterator)) for _ in range(3)] == [0, 1, 2]
  _await_records(step)
  del step
  gc.collect()
  assert int(next(iterator)) == 3
  assert _rest(_staged(), iterator) == list(range(4, _COUNT))


def case_a_checkpoint_resumes_without_the_step():
  folder = tempfile.mkdtemp()
  step, iterator = _staged(), _numbers()
  for _ in range(3):
    step(iterator)
  _await_records(step)
  path = tf.train.Checkpoint(iterator=iterator).save(f"{folder}/checkpoint")
  for resume in (_step(tf.Variable(0, dtype=tf.int64)), _staged(capacity=2), _staged(num_threads=2)):
    other = _numbers()
    tf.train.Checkpoint(iterator=other).restore(path).assert_consumed()
    assert sorted(_rest(resume, other)) == list(range(3, _COUNT))
  assert _rest(step, iterator) == list(range(3, _COUNT))


def case_one_of_two_iterators_is_restored():
  folder = tempfile.mkdtemp()

  @tf.function
  def both(first, second):
    numbers = tf.stack([next(first), next(second)])
    weight.assign_add(tf.reduce_sum(tf.cast(tf.strings.length(tf.strings.as_string(numbers)), tf.int64)))
    return numbers

  weight = tf.Variable(0, dtype=tf.int64)
  step = tf.staging.ahead(both, capacity=4)
  first, second = _numbers(), _numbers()
  checkpoint = tf.train.Checkpoint(iterator=first)
  path = checkpoint.save(f"{folder}/checkpoint")
  for number in range(3):
    assert step(first, second).numpy().tolist() == [number, number]
  _await_records(step)
  checkpoint.restore(path)
  for number in range(3):
    assert step(first, second).numpy().tolist() == [number, number + 3]


if __name__ == "__main__":
  cases.main(globals())
