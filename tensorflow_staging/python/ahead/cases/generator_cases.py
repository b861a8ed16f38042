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


def _seeded_step():
  total = tf.Variable(0.0)

  @tf.function
  def step(iterator):
    number = tf.strings.to_number(next(iterator))
    total.assign_add(number)
    # The step that finds the end draws nothing.
    with tf.control_dependencies([number]):
      return total + tf.random.uniform([], seed=7)

  return step


def case_seeded_draws_go_on_in_other_steps_of_the_same_function():
  def program(wrap):
    step = _seeded_step()
    values, wrapped = [], None
    for _ in range(3):
      wrapped = wrap(step)
      values.append(loops.drain(wrapped, iter(loops.numbers(["1", "2", "3"]))))
    return values, wrapped

  loops.compare(program)


def _compare_seeded_draws(program, why_not):
  expected, _ = program(loops.plain)
  got, step = program(loops.staged())
  assert got == expected, f"{got} != {expected}"
  assert why_not in str(step.why_not), step.why_not


def case_seeded_draws_go_on_with_data_that_a_variable_may_change():
  def program(wrap):
    wrapped = wrap(_seeded_step())
    factor = tf.Variable(2)
    as_texts = lambda dataset: iter(dataset.map(tf.strings.as_string))
    one, other = as_texts(tf.data.Dataset.range(20)), as_texts(tf.data.Dataset.range(20).map(
        lambda i: tf.cast(i, tf.int32) * factor))
    values = [wrapped(one).numpy() for _ in range(3)]
    for iterator, steps in ((other, 4), (one, 3), (other, 2)):
      values += [wrapped(iterator).numpy() for _ in range(steps)]
    return values, wrapped

  _compare_seeded_draws(program, "its data is made from variable")


def case_seeded_draws_go_on_in_calls_by_turns():
  def program(wrap):
    @tf.function
    def step(iterator, buckets):
      number = tf.strings.to_hash_bucket_fast(next(iterator), buckets)
      with tf.control_dependencies([number]):
        return tf.cast(number, tf.float32) + tf.random.uniform([], seed=7)

    wrapped = wrap(step)
    iterator = iter(loops.words(1).repeat())
    return [wrapped(iterator, buckets).numpy() for _ in range(6) for buckets in (50, 50, 60, 60)], wrapped

  _compare_seeded_draws(program, "by turns")


def case_seeded_draws_go_on_if_something_else_draws_from_a_generator_of_the_step():
  def program(wrap):
    generator = tf.random.Generator.from_seed(3)
    total = tf.Variable(0.0)

    @tf.function
    def step(iterator):
      number = tf.strings.to_number(next(iterator))
      total.assign_add(tf.reduce_sum(number * generator.uniform(tf.shape(number))))
      with tf.control_dependencies([number]):
        return total + tf.random.uniform([], seed=7)

    wrapped = wrap(step)
    iterator = iter(loops.numbers([str(i) for i in range(40)]).batch(2))
    values = []
    for i in range(15):
      if i in (4, 7, 8):
        values.append(generator.uniform([]).numpy())
      values.append(wrapped(iterator).numpy())
    return (values, generator.state.numpy().tolist()), wrapped

  _compare_seeded_draws(program, "something else draws")


def _step_with_another_trace(generator=None):
  """Returns a step that draws with a seed in one of two traces; without a generator, the other has nothing ahead."""
  total = tf.Variable(0.0)

  def drawn(number):
    return number if generator is None else number * generator.uniform(tf.shape(number))

  @tf.function
  def step(iterator, seeded=True):
    number = next(iterator)
    if not seeded:
      total.assign_add(tf.reduce_sum(drawn(number)))
      return total.read_value()
    number = tf.strings.to_number(tf.strings.as_string(number))
    total.assign_add(tf.reduce_sum(drawn(number)))
    with tf.control_dependencies([number]):
      return total + tf.random.uniform([], seed=7)

  return step


def _floats(factor=1.0):
  return iter(tf.data.Dataset.range(60).map(lambda i: tf.cast(i, tf.float32) * factor).batch(2))


def case_seeded_draws_go_on_after_calls_that_cannot_be_staged():
  def program(wrap):
    wrapped = wrap(_step_with_another_trace())
    factor = tf.Variable(2.0)
    iterator, other = _floats(), _floats(factor)
    values = []
    for given, seeded in [(iterator, True)] * 3 + [(other, False), (other, True), (iterator, False)] + [
        (iterator, True)] * 3:
      values.append(wrapped(given, seeded=seeded).numpy())
    return values, wrapped

  loops.compare_values(program)


def case_seeded_draws_go_on_beside_another_trace_whose_generator_changes():
  def program(wrap):
    generator = tf.random.Generator.from_seed(3)
    wrapped = wrap(_step_with_another_trace(generator))
    one, other = _floats(), _floats()
    values = []
    for i in range(20):
      if i % 3 == 2:
        values.append(generator.uniform([]).numpy())
      values.append(wrapped(other if i % 4 > 1 else one, seeded=i % 4 < 2).numpy())
    return values, wrapped

  loops.compare_values(program)


def case_seeded_draws_that_began_without_a_stage_go_on():
  def program(wrap):
    wrapped = wrap(_step_with_another_trace())
    values, factor = [], tf.Variable(2.0)
    for iterator in (_floats(factor), _floats()):
      values += [wrapped(iterator).numpy() for _ in range(4)]
    return values, wrapped

  _compare_seeded_draws(program, "has drawn without a stage before")


def case_seeded_draws_go_on_in_a_step_with_other_options():
  def program(wrap, **options):
    step = _step_with_another_trace()
    values = [wrap(step)(_floats()).numpy() for _ in range(3)]
    wrapped = wrap(step, **options)
    iterator = _floats()
    return values + [wrapped(iterator).numpy() for _ in range(3)], wrapped

  expected, _ = program(lambda step: step)
  got, step = program(tf.staging.ahead, python_ahead=True)
  assert got == expected, (got, expected)
  assert step.why_not is None, step.why_not


def case_seeded_draws_go_on_after_calls_under_a_tape():
  def program(wrap):
    wrapped = wrap(_seeded_step())
    iterator = iter(loops.numbers([str(i) for i in range(20)]))
    values = [wrapped(iterator).numpy() for _ in range(4)]
    with tf.GradientTape():
      values += [wrapped(iterator).numpy() for _ in range(2)]
    return values + [wrapped(iterator).numpy() for _ in range(4)], wrapped

  loops.compare(program)


def case_a_function_that_has_drawn_with_a_seed_before_is_not_staged():
  def program(wrap):
    step = _seeded_step()
    values = loops.drain(step, iter(loops.numbers(["1", "2"])))
    wrapped = wrap(step)
    return values + loops.drain(wrapped, iter(loops.numbers(["1", "2"]))), wrapped

  expected, _ = program(loops.plain)
  got, step = program(loops.staged())
  assert got == expected, f"{got} != {expected}"
  assert "has drawn without a stage before" in step.why_not, step.why_not


if __name__ == "__main__":
  cases.main(globals())
