# SPDX-License-Identifier: Apache-2.0
"""Random generators and random ops with seeds in loops of one's own: they draw what they draw without a stage."""

import cases
import compared_loops as loops
import tensorflow as tf


def case_a_generator_draws_as_without_a_stage():
  def program(wrap):
    total = tf.Variable(0.0)
    generator = tf.random.Generator.from_seed(3)

    @tf.function
    def step(iterator):
      number = tf.strings.to_number(next(iterator))
      noise = number + generator.uniform(tf.shape(number))
      total.assign_add(tf.reduce_sum(noise))
      return noise

    wrapped = wrap(step)
    dataset = tf.data.Dataset.from_tensor_slices(["1", "2", "3", "4", "5", "6"]).batch(2)
    values, states = [], []
    for _ in range(3):
      iterator = iter(dataset)
      values.append(wrapped(iterator).numpy().tolist())  # The epoch is left early: records are dropped.
      states.append(generator.state.numpy().tolist())
    return (values, states, loops.epochs(wrapped, dataset), total.numpy()), wrapped

  loops.compare(program)


def case_a_generator_that_the_step_uses_otherwise_stays_in_the_step():
  def program(wrap):
    generator = tf.random.Generator.from_seed(3)
    total = tf.Variable(0.0)

    @tf.function
    def step(iterator):
      number = tf.strings.to_number(next(iterator))
      total.assign_add(tf.reduce_sum(number) + generator.uniform([]))
      return number, generator.uniform([2]) + total, generator.state.read_value()

    wrapped = wrap(step)
    return loops.epochs(wrapped, tf.data.Dataset.from_tensor_slices(["1", "2", "3"]).batch(1)), wrapped

  loops.compare(program)


def case_seeded_draws_go_on_over_epochs_left_early():
  def program(wrap):
    total = tf.Variable(0.0)

    @tf.function
    def step(iterator):
      number = tf.strings.to_number(next(iterator))
      total.assign_add(tf.reduce_sum(number))
      return number + tf.random.uniform([], seed=7)

    wrapped = wrap(step)
    values = []
    for _ in range(4):
      iterator = iter(tf.data.Dataset.from_tensor_slices(["1", "2", "3", "4", "5"]))
      values += [wrapped(iterator).numpy() for _ in range(2)]
    return values, wrapped

  loops.compare(program)


def case_something_else_draws_from_the_generator_of_a_step():
  def program(wrap):
    generator = tf.random.Generator.from_seed(3)
    total = tf.Variable(0.0)

    def make():
      @tf.function
      def step(iterator):
        noise = generator.uniform([2]) + tf.strings.to_number(next(iterator))
        total.assign_add(tf.reduce_sum(noise))
        return noise
      return wrap(step)

    one, two = make(), make()
    dataset = tf.data.Dataset.from_tensor_slices([str(i) for i in range(40)]).batch(2)
    values, iterator, other = [], iter(dataset.repeat()), iter(dataset)
    for epoch in range(3):
      generator.reset_from_seed(epoch)
      values += [one(iterator).numpy().tolist() for _ in range(12)]
      values.append(generator.normal([1]).numpy().tolist())
    for _ in range(10):  # By turns.
      values += [one(iterator).numpy().tolist(), two(other).numpy().tolist()]
    generator.state.assign(tf.random.Generator.from_seed(9).state)
    values += [one(iterator).numpy().tolist() for _ in range(6)]
    return (values, generator.state.numpy().tolist(), total.numpy()), one

  loops.compare(program)


def case_a_step_goes_on_after_it_has_failed_between_its_draws():
  def program(wrap):
    generator = tf.random.Generator.from_seed(3)

    @tf.function
    def step(iterator, most):
      number = tf.strings.to_number(next(iterator))
      with tf.control_dependencies([tf.debugging.assert_less(number, most)]):
        return generator.uniform([]) + number

    wrapped = wrap(step)
    iterator = iter(loops.numbers([str(i) for i in range(20)]))
    values = []
    for i in range(20):
      try:
        values.append(wrapped(iterator, tf.constant(100.0 if i % 5 else 0.0)).numpy())
      except tf.errors.InvalidArgumentError:
        values.append("fails")
    return values, wrapped

  loops.compare_values(program)


def case_seeded_draws_go_on_in_other_steps_of_the_same_function():
  def program(wrap):
    total = tf.Variable(0.0)

    @tf.function
    def step(iterator):
      total.assign_add(tf.strings.to_number(next(iterator)))
      return total + tf.random.uniform([], seed=7)

    values, wrapped = [], None
    for _ in range(3):
      wrapped = wrap(step)
      values.append(loops.drain(wrapped, iter(loops.numbers(["1", "2", "3"]))))
    return values, wrapped

  loops.compare(program)


def case_a_function_that_has_drawn_with_a_seed_before_is_not_staged():
  def program(wrap):
    @tf.function
    def step(iterator):
      return tf.strings.to_number(next(iterator)) + tf.random.uniform([], seed=7)

    values = loops.drain(step, iter(loops.numbers(["1", "2"])))
    wrapped = wrap(step)
    return values + loops.drain(wrapped, iter(loops.numbers(["1", "2"]))), wrapped

  expected, _ = program(loops.plain)
  got, step = program(loops.staged())
  assert got == expected, f"{got} != {expected}"
  assert "has drawn without a stage before" in step.why_not, step.why_not


if __name__ == "__main__":
  cases.main(globals())
