# SPDX-License-Identifier: Apache-2.0
"""Errors of what runs ahead: they come in their place, and steps go on after them."""

import cases
import compared_loops as loops
import tensorflow as tf


def case_an_error_comes_in_its_place_and_the_next_step_goes_on():
  def program(wrap):
    total = tf.Variable(0.0)

    @tf.function
    def step(iterator):
      number = tf.strings.to_number(next(iterator))
      total.assign_add(number)
      return total.read_value()

    line = step.python_function.__code__.co_firstlineno + 2
    wrapped = wrap(step)
    iterator = iter(loops.numbers(["1", "2", "three", "4", "five", "6"]))
    values = []
    for _ in range(8):
      try:
        values.append(wrapped(iterator).numpy())
      except tf.errors.OpError as error:
        values.append(type(error).__name__)
        if isinstance(error, tf.errors.InvalidArgumentError):
          assert "three" in str(error) or "five" in str(error), error
          assert f"line {line}, in step" in str(error), error
    return values, wrapped

  loops.compare(program)


def case_an_error_is_not_lost_to_the_end_of_the_data():
  @tf.function
  def step(iterator):
    return tf.strings.to_number(next(iterator))

  wrapped = tf.staging.ahead(step, capacity=2, num_threads=3)
  for _ in range(20):
    iterator, failed, got = iter(loops.numbers(["1", "2", "x"])), 0, 0
    while True:
      try:
        wrapped(iterator)
        got += 1
      except tf.errors.InvalidArgumentError:
        failed += 1
      except tf.errors.OutOfRangeError:
        break
    assert (got, failed) == (2, 1), (got, failed)


def case_an_error_waits_for_its_step_when_other_records_are_needed():
  def program(wrap):
    total = tf.Variable(0.0)

    @tf.function
    def step(iterator, scale=1.0):
      number = tf.strings.to_number(next(iterator)) * scale
      total.assign_add(number)
      return total.read_value()

    wrapped = wrap(step)
    iterator = iter(loops.numbers(["1", "2", "three", "4", "5"]).map(lambda text: tf.strings.join([text, ""])))
    values = []
    for i in range(7):
      try:
        values.append(wrapped(iterator, scale=1.0 if i < 1 else 2.0).numpy())
      except tf.errors.OpError as error:
        values.append(type(error).__name__)
    return values, wrapped

  loops.compare(program)


if __name__ == "__main__":
  cases.main(globals())
