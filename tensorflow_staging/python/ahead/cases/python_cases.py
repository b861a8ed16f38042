# SPDX-License-Identifier: Apache-2.0
"""Steps whose Python functions, and whose data, read what the program changes; run by ahead/ahead_test.py."""

import cases
import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)  # Sums in one order.


def _words(count=8):
  options = tf.data.Options()
  options.experimental_optimization.apply_default_optimizations = False
  options.experimental_optimization.inject_prefetch = False
  return tf.data.Dataset.from_tensor_slices([f"w{i}" for i in range(count)]).with_options(options)


def _calls(step, iterator, change):
  """Calls the step until the data ends, and `change` after each call; returns what it has returned."""
  values = []
  while True:
    try:
      values.append(tf.nest.map_structure(lambda t: t.numpy().tolist(), step(iterator)))
    except tf.errors.OutOfRangeError:
      return values
    change()


def _compare(make, is_staged=True, **options):
  """Compares a program (() -> (step, dataset, change)) without and with a stage; returns the step with one."""
  step, dataset, change = make()
  expected = _calls(step, iter(dataset), change)
  step, dataset, change = make()
  wrapped = tf.staging.ahead(step, capacity=4, **options)
  got = _calls(wrapped, iter(dataset), change)
  assert got == expected, f"{got} != {expected}"
  assert (wrapped.why_not is None) == is_staged, wrapped.why_not
  return wrapped


def _program(call, change, state):
  """Returns a program whose step hashes a word, and lets `call` see the number."""

  def make():
    state["value"] = 0
    weight = state["variable"] = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(iterator):
      number = tf.strings.to_hash_bucket_fast(next(iterator), 50)
      result = call(number)
      # TensorFlow does not know what a Python function reads, so it orders nothing by itself.
      with tf.control_dependencies([result]):
        weight.assign_add(1)
      return number, result

    return step, _words(), change

  return make


def case_a_python_function_sees_the_variable_that_the_step_changes():
  state = {}
  seen = lambda number: number + state["variable"]
  step = _compare(_program(lambda number: tf.py_function(seen, [number], tf.int64), lambda: None, state))
  assert "calls a Python function" in str(tf.staging.explain(step)), tf.staging.explain(step)


def case_a_python_function_sees_the_dictionary_that_the_program_changes():
  state = {}

  def change():
    state["value"] += 1

  seen = lambda number: number + np.int64(state["value"])
  for call in (tf.numpy_function, tf.compat.v1.py_func):
    _compare(_program(lambda number, call=call: call(seen, [number], tf.int64), change, state))


def case_a_python_function_in_a_branch_or_a_loop_sees_it_too():
  state = {}

  def change():
    state["value"] += 1

  def seen(number):
    result = tf.numpy_function(lambda n: n + np.int64(state["value"]), [number], tf.int64)
    return tf.ensure_shape(result, number.shape)

  for call in (
      lambda number: tf.cond(number > 20, lambda: seen(number), lambda: seen(number) * 2),
      lambda number: tf.map_fn(seen, number[tf.newaxis]),
      lambda number: tf.while_loop(lambda n: n < 100, lambda n: (seen(n) + 30,), [number]),
      tf.function(seen)):
    step = _compare(_program(call, change, state))
    assert "Python function" in str(tf.staging.explain(step)), tf.staging.explain(step)


def case_a_function_without_state_runs_ahead():
  state = {}
  call = lambda number: tf.numpy_function(lambda n: n * 2, [number], tf.int64, stateful=False)
  step = _compare(_program(call, lambda: None, state))
  assert "PyFuncStateless" in str([found.nodes_ahead for _, found in step._divisions.values()])  # By its name.


def case_an_option_lets_each_function_run_ahead():
  state = {}
  for call in (tf.numpy_function, tf.py_function):
    program = _program(lambda number, call=call: call(lambda n: n * 2, [number], tf.int64), lambda: None, state)
    for option in (True, False):
      step = _compare(program, python_ahead=option)
      assert ("Python function" in str(tf.staging.explain(step))) != option, tf.staging.explain(step)
  try:
    tf.staging.ahead(tf.function(lambda: 0), python_ahead=1)
  except TypeError as error:
    assert "python_ahead" in str(error), error
  else:
    raise AssertionError("no error")


def case_where_only_a_python_function_follows_the_data_a_line_says_what_to_do():
  weight = tf.Variable(0, dtype=tf.int64)

  @tf.function
  def step(iterator):
    weight.assign_add(tf.numpy_function(lambda word: np.int64(len(word)), [next(iterator)], tf.int64))

  wrapped = tf.staging.ahead(step)
  wrapped(iter(_words()))
  assert "stateful=False" in wrapped.why_not and "python_ahead=True" in wrapped.why_not, wrapped.why_not


def case_data_that_is_made_from_a_variable_is_not_read_ahead():
  for kind in ("map", "filter", "called"):

    def make(kind=kind):
      value, weight = tf.Variable(0, dtype=tf.int64, name="curriculum"), tf.Variable(0, dtype=tf.int64)
      dataset = _words()
      if kind == "map":
        dataset = dataset.map(lambda word: tf.strings.join([word, tf.strings.as_string(value)]))
      elif kind == "filter":
        dataset = dataset.filter(lambda word: tf.strings.to_hash_bucket_fast(word, 10) + value > 4)
      else:
        read = tf.function(lambda: value + 1)
        dataset = dataset.map(lambda word: tf.strings.join([word, tf.strings.as_string(read())]))

      @tf.function
      def step(iterator):
        number = tf.strings.to_hash_bucket_fast(next(iterator), 1000)
        weight.assign_add(number)
        return number

      return step, dataset, lambda: value.assign_add(2)

    compared = _compare(make, is_staged=False)
    assert "curriculum" in compared.why_not, compared.why_not


def case_data_that_is_made_from_a_table_that_may_change_is_not_read_ahead():
  for kind in ("map", "called", "experimental"):

    def make(kind=kind):
      weight = tf.Variable(0, dtype=tf.int64)
      table = (
          tf.lookup.experimental.DenseHashTable(tf.string, tf.int64, -1, "", "-") if kind == "experimental" else
          tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1))
      look_up = tf.function(table.lookup) if kind == "called" else table.lookup
      dataset = _words().map(lambda word: tf.strings.join([word, tf.strings.as_string(look_up(word))]))
      words = iter([word for word in _words().as_numpy_iterator()] * 3)

      @tf.function
      def step(iterator):
        number = tf.strings.to_hash_bucket_fast(next(iterator), 1000)
        weight.assign_add(number)
        return number

      def insert():
        next(words)
        table.insert(tf.constant([next(words)]), tf.constant([7], tf.int64))

      return step, dataset, insert

    compared = _compare(make, is_staged=False)
    assert "made from a table" in compared.why_not, compared.why_not


def case_data_that_is_made_from_a_fixed_table_is_read_ahead():
  def make():
    weight = tf.Variable(0, dtype=tf.int64)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [3]), -1)

    @tf.function
    def step(iterator):
      number = tf.strings.to_hash_bucket_fast(next(iterator), 1000)
      weight.assign_add(number)
      return number

    return step, _words().map(lambda word: tf.strings.join([word, tf.strings.as_string(table[word])])), lambda: None

  _compare(make)


def case_data_that_draws_is_read_ahead():
  def make():
    generator, weight = tf.random.Generator.from_seed(3), tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(iterator):
      number = tf.strings.to_hash_bucket_fast(next(iterator), 1000)
      weight.assign_add(number)
      return number

    draw = lambda word: tf.strings.join([word, tf.strings.as_string(generator.uniform([]))])
    return step, _words().map(draw), lambda: None

  _compare(make)


if __name__ == "__main__":
  cases.main(globals())
