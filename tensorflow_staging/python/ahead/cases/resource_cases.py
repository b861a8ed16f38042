# SPDX-License-Identifier: Apache-2.0
"""Variables and tables that a program or a step changes: a stage sees no old value of them."""

import cases
import compared_loops as loops
import tensorflow as tf


def case_variables_that_python_changes_are_no_constants():
  def program(wrap):
    scale = tf.Variable(1.0)

    @tf.function
    def step(iterator):
      return tf.strings.to_number(next(iterator)) * scale

    wrapped = wrap(step)
    iterator = iter(tf.data.Dataset.from_tensor_slices(["1", "2", "3", "4", "5"]))
    values = []
    for i in range(5):
      values.append(wrapped(iterator).numpy())
      scale.assign(float(i))
    return values, wrapped

  loops.compare(program)


def case_tables_that_python_changes_are_no_constants():
  def program(wrap):
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)

    @tf.function
    def step(iterator):
      text = tf.strings.lower(next(iterator))
      return table.lookup(text)

    wrapped = wrap(step)
    iterator = iter(tf.data.Dataset.from_tensor_slices(["A", "A", "A"]))
    values = []
    for i in range(3):
      values.append(wrapped(iterator).numpy())
      table.insert(tf.constant(["a"]), tf.constant([i], tf.int64))
    return values, wrapped

  loops.compare(program)


def case_data_that_the_step_changes_is_not_read_ahead():
  def program(wrap):
    shift = tf.Variable(0, dtype=tf.int64)
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.inject_prefetch = False
    options.autotune.enabled = False
    dataset = tf.data.Dataset.range(5).map(lambda i: i + shift).with_options(options)

    @tf.function
    def step(iterator):
      number = tf.strings.length(tf.strings.as_string(next(iterator) * 100))
      with tf.control_dependencies([number]):  # TensorFlow does not see that the data reads it.
        shift.assign_add(10)
      return number, shift.read_value()

    wrapped = wrap(step)
    return loops.drain(wrapped, iter(dataset)), wrapped

  expected, _ = program(loops.plain)
  got, step = program(loops.staged())
  assert got == expected
  assert "which it changes" in step.why_not, step.why_not


if __name__ == "__main__":
  cases.main(globals())
