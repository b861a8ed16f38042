# SPDX-License-Identifier: Apache-2.0
"""Random generators that draw in loops and conditionals of a step; run by ahead/ahead_test.py.

How often they draw may depend on the data. Values and states are those without a stage.
"""

import functools

import cases
import drawing_steps
import tensorflow as tf


def _compare(compute, ahead: str, **options) -> None:
  drawing_steps.compare(compute, lambda: tf.random.Generator.from_seed(3), ahead, **options)


def case_a_map():
  _compare(lambda generator, numbers: tf.map_fn(lambda x: x + generator.uniform([]), numbers), "map/while")


def case_a_map_that_chooses_at_random():
  def augment(generator, number):
    chosen = generator.uniform([], 0, 3, tf.int32)
    return tf.switch_case(
        chosen, [lambda: number, lambda: number + generator.uniform([]), lambda: number * generator.normal([2])[1]])

  _compare(lambda generator, numbers: tf.map_fn(lambda x: augment(generator, x), numbers), "map/while")


def case_draws_before_and_after_a_map():
  def compute(generator, numbers):
    numbers += generator.uniform([])
    numbers = tf.map_fn(lambda x: x + generator.uniform([]), numbers)
    return numbers * generator.uniform(tf.shape(numbers)) + generator.normal([])

  _compare(compute, "map/while")


def case_a_draw_before_the_read():
  _compare(
      lambda generator, numbers, noise: noise * tf.strings.to_number(tf.strings.as_string(numbers)), "AsString",
      before=lambda generator: generator.uniform([]))


def case_a_conditional_that_the_data_decides():
  _compare(
      lambda generator, numbers: tf.cond(
          tf.reduce_sum(numbers) > 9, lambda: numbers + generator.uniform(tf.shape(numbers)), lambda: numbers / 2),
      "cond")


def case_as_many_draws_as_the_data_says():
  def compute(generator, numbers):
    return tf.while_loop(
        lambda x: tf.reduce_sum(x) < 20.0, lambda x: x + generator.uniform([], 1, 4), [numbers],
        shape_invariants=[tf.TensorShape([None])])[0]

  _compare(compute, "while")


def case_calls_of_a_function_with_a_loop():
  def compute(generator, numbers):
    augment = tf.function(lambda n: tf.map_fn(lambda x: x + tf.reduce_sum(generator.uniform([2])), n))
    return augment(augment(numbers) + generator.uniform([]))

  _compare(compute, "map/while")


def case_calls_that_follow_one_another():
  def compute(generator, numbers):
    augment = tf.function(lambda n: n + generator.uniform(tf.shape(n)))
    return augment(augment(numbers)) * generator.uniform([])

  _compare(compute, "StatelessRandomUniformV2")


def case_a_loop_in_a_call_that_xla_compiles_stays_in_the_step():
  def compute(generator, numbers):
    compiled = tf.function(lambda n: tf.map_fn(lambda x: x + generator.uniform([]), n), jit_compile=True)
    return compiled(tf.sin(numbers))

  _compare(compute, "Sin", in_step="map/while")


def case_a_loop_in_such_a_call_before_what_xla_cannot_compile():
  weight = tf.Variable(2.0)

  def compute(generator, numbers, jit_compile=True):
    def augment(numbers):
      numbers = tf.map_fn(lambda x: x + generator.uniform([]), numbers)
      return weight * tf.strings.to_number(tf.strings.as_string(numbers))

    return tf.function(augment, jit_compile=jit_compile)(numbers)

  # Without a stage, XLA would have to compile the strings.
  _compare(compute, "map/while", unstaged=functools.partial(compute, jit_compile=False))


def case_a_conditional_that_draws_its_choice_stays_in_the_step():
  # At the end of the data, its draws are made without an element.
  def compute(generator, numbers):
    numbers = tf.sin(numbers)
    return tf.switch_case(
        generator.uniform([], 0, 2, tf.int32), [lambda: numbers + generator.uniform([]), lambda: numbers])

  _compare(compute, "Sin")


if __name__ == "__main__":
  cases.main(globals())
