# SPDX-License-Identifier: Apache-2.0
"""Loops of one's own with `tf.staging.ahead`: what of a step runs ahead, and what stays."""

import functools

import cases
import compared_loops as loops
import tensorflow as tf


def case_hashes_and_a_table_run_ahead():
  def program(wrap):
    weights = tf.Variable(tf.zeros([10]))
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([3, 4], tf.int64)), 5)

    @tf.function
    def step(iterator):
      text = next(iterator)
      ids = tf.strings.to_hash_bucket_fast(text, 5) + table.lookup(text)
      weights.scatter_add(tf.IndexedSlices(tf.ones_like(ids, tf.float32), ids))
      return tf.reduce_sum(weights * tf.range(10.0)), ids

    wrapped = wrap(step)
    return loops.epochs(wrapped, loops.words()), wrapped

  loops.compare(program)


def case_outputs_that_the_region_computes():
  def program(wrap):
    steps = tf.Variable(0)

    @tf.function
    def step(iterator):
      text = next(iterator)
      tf.debugging.assert_less(tf.strings.length(text), 100)
      steps.assign_add(tf.size(text))
      return {"text": tf.strings.upper(text), "raw": text}, steps.read_value()

    wrapped = wrap(step)
    return loops.epochs(wrapped, loops.words()), wrapped

  loops.compare(program)


def case_nested_functions_are_divided_in_place():
  def program(wrap):
    weights = tf.Variable(tf.ones([9]))

    @tf.function
    def prepare(text, buckets):
      return tf.strings.to_hash_bucket_fast(tf.strings.join([text, "!"]), buckets)

    @tf.function
    def train(text, other):
      ids = prepare(text, 9)
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(weights, ids) ** 2)
      weights.assign_sub(0.1 * tf.convert_to_tensor(tape.gradient(loss, weights)))
      return loss, ids, other

    @tf.function
    def step(iterator):
      text = next(iterator)
      first = train(text, tf.strings.length(text))
      second = train(tf.strings.upper(text), weights[0])
      return first, second

    wrapped = wrap(step)
    return loops.epochs(wrapped, loops.words()), wrapped

  loops.compare(program)


def case_xla_compiles_a_part_of_the_step():
  @tf.function(jit_compile=True)
  def train(text, weights):
    ids = tf.strings.to_hash_bucket_fast(text, 9)
    # XLA needs the length when it compiles.
    length = tf.strings.length(text[0])
    weights.assign(weights + tf.reduce_sum(tf.one_hot(ids, 9), 0))
    return tf.reduce_sum(weights * tf.range(9.0)), tf.size(tf.ones([length]))

  weights = tf.Variable(tf.zeros([9]))
  wrapped = tf.staging.ahead(tf.function(lambda iterator: train(next(iterator), weights)))
  got = loops.epochs(wrapped, loops.words(), 1)
  assert wrapped.why_not is None, wrapped.why_not
  total, expected = [0] * 9, []
  for batch in loops.words():
    for i in tf.strings.to_hash_bucket_fast(batch, 9).numpy():
      total[i] += 1
    expected.append((float(sum(i * n for i, n in enumerate(total))), 1))
  assert got == [expected], (got, expected)


def case_a_loop_in_the_step():
  def program(wrap):
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(iterator):
      for _ in tf.range(3):
        total.assign_add(tf.reduce_sum(tf.strings.to_hash_bucket_fast(next(iterator), 9)))
      return total.read_value()

    wrapped = wrap(step)
    return (loops.epochs(wrapped, loops.words()), total.numpy()), wrapped

  loops.compare(program)


def case_a_loop_over_the_iterator():
  def program(wrap):
    counts = tf.Variable(tf.zeros([10]))
    generator = tf.random.Generator.from_seed(3)

    @tf.function
    def some(iterator):
      texts = tf.constant(0)
      for text in iterator:
        ids = tf.strings.to_hash_bucket_fast(text, 9) + generator.uniform(tf.shape(text), maxval=2, dtype=tf.int64)
        counts.scatter_add(tf.IndexedSlices(tf.ones_like(ids, tf.float32), ids))
        texts += tf.size(ids)
        if texts >= 8:
          break
      return texts, tf.reduce_sum(counts * tf.range(10.0))

    wrapped = wrap(some)
    values = []
    for _ in range(3):  # An epoch each, of which the last call finds the end.
      iterator = iter(loops.words())
      values.append([[value.numpy() for value in wrapped(iterator)] for _ in range(5)])
    return (values, generator.state.numpy().tolist()), wrapped

  loops.compare(program)


def case_a_step_asks_whether_there_is_an_element():
  def program(wrap, takes_each):
    total = tf.Variable(0, dtype=tf.int64)
    generator = tf.random.Generator.from_seed(3)

    @tf.function
    def step(iterator, trains):
      element = iterator.get_next_as_optional()
      uses = element.has_value() if takes_each else tf.logical_and(element.has_value(), trains)
      if uses:
        ids = tf.strings.to_hash_bucket_fast(element.get_value(), 9)
        total.assign_add(tf.reduce_sum(ids * generator.uniform(tf.shape(ids), maxval=99, dtype=tf.int64)))
      return element.has_value(), total.read_value()

    wrapped = wrap(step)
    values = []
    for _ in range(2):
      iterator = iter(loops.words())
      values.append([[v.numpy() for v in wrapped(iterator, tf.constant(i % 3 > 0))] for i in range(14)])
    return (values, generator.state.numpy().tolist()), wrapped

  for takes_each in (True, False):
    loops.compare(functools.partial(program, takes_each=takes_each))


def case_an_error_ends_a_loop_over_the_iterator():
  def program(wrap):
    total = tf.Variable(0)

    @tf.function
    def all_of(iterator):
      for text in iterator:
        with tf.control_dependencies([tf.debugging.assert_none_equal(text, "q")]):
          total.assign_add(tf.strings.length(text))
      return total.read_value()

    wrapped = wrap(all_of)
    return loops.results_or_errors(wrapped, iter(loops.numbers(["a", "bb", "q", "c", "dd"])), total), wrapped

  loops.compare(program)


def case_other_arguments_beside_the_iterator():
  def program(wrap):
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(iterator, factors):
      ids = tf.strings.to_hash_bucket_fast(next(iterator), 9)
      total.assign_add(tf.reduce_sum(factors) * tf.reduce_sum(ids))
      return ids, total.read_value()

    wrapped = wrap(step)
    iterator = iter(loops.words())
    values = []
    for i in range(8):
      ids, now = wrapped(iterator, factors=tf.ones([i % 3 + 1], tf.int64))
      values.append((ids.numpy().tolist(), now.numpy()))
    return values, wrapped

  loops.compare(program)


def case_what_is_not_staged_runs_as_it_is_and_says_why():
  variable = tf.Variable(1.0)
  endless = loops.numbers(["1", "2"]).repeat()

  @tf.function
  def nothing(iterator):
    return tf.gather(variable[None] + 1, 0) + tf.cast(tf.strings.length(next(iterator)), tf.float32) * 0

  @tf.function
  def only_read(iterator):
    variable.assign_add(next(iterator))
    return variable.read_value()

  @tf.function
  def optional(iterator):
    element = iterator.get_next_as_optional()
    return element.get_value()

  @tf.function
  def one_read_before(iterator):
    total, element = tf.constant(0), iterator.get_next_as_optional()
    while element.has_value():
      total += tf.strings.length(element.get_value())
      element = iterator.get_next_as_optional()
    return total

  @tf.function
  def gets_twice(iterator):
    element = iterator.get_next_as_optional()
    return tf.cond(
        element.has_value(), lambda: tf.strings.join([element.get_value(), element.get_value()]),
        lambda: tf.constant(""))

  @tf.function
  def in_a_branch(iterator, reads):
    return tf.cond(reads, lambda: tf.strings.length(next(iterator)), lambda: tf.constant(0))

  @tf.function
  def second_after_training(iterator):
    variable.assign_add(tf.strings.to_number(next(iterator)))
    with tf.control_dependencies([variable.read_value()]):
      return tf.strings.to_number(next(iterator))

  def eager(iterator):
    return next(iterator)

  floats = tf.data.Dataset.from_tensors(1.0).repeat()
  assert tf.staging.ahead(nothing)(iter(endless)).numpy() == 2
  assert "can run ahead" in loops.why_not(only_read, iter(floats)), loops.why_not(only_read, iter(floats))
  assert "other than by next()" in loops.why_not(optional, iter(endless))
  assert "other than by next()" in loops.why_not(one_read_before, iter(loops.numbers(["1", "2"])))
  assert "other than by one get_value()" in loops.why_not(gets_twice, iter(endless))
  assert "reads the iterator in a branch" in loops.why_not(in_a_branch, iter(endless), tf.constant(True))
  assert "which reads the iterator" in loops.why_not(second_after_training, iter(endless))
  assert "no tf.function" in loops.why_not(eager, iter(endless))
  no_iterator = loops.why_not(tf.function(lambda x: x + 1), tf.constant(1))
  assert no_iterator == "no argument is a tf.data.Iterator, as iter(dataset) returns, only EagerTensor", no_iterator


def case_python_values_choose_a_trace():
  def program(wrap):
    total = tf.Variable(0, dtype=tf.int64)
    generator = tf.random.Generator.from_seed(3)

    @tf.function
    def step(inputs, *, training=True, names=("a", None), scale=1):
      text = next(inputs["iterator"])
      ids = tf.strings.to_hash_bucket_fast(text, 9) * scale
      if training:
        ids += tf.cast(generator.uniform(tf.shape(ids)) * 9, tf.int64)
      total.assign_add(tf.reduce_sum(ids))
      return {"ids": ids if names[0] == "a" else tf.strings.length(text), "total": total.read_value(), "none": names[1]}

    wrapped = wrap(step)
    values = []
    calls = [{}, {"training": True}, {"training": False}, {"names": ("b", None)}, {"scale": 3}]
    for given in calls:  # A new iterator each.
      inputs, results = {"iterator": iter(loops.words())}, []
      for _ in range(3):
        result = wrapped(inputs, **given)
        assert result.pop("none") is None
        results.append({key: value.numpy().tolist() for key, value in result.items()})
      values.append(results)
    return values, wrapped

  loops.compare(program)


def case_a_function_with_arguments_bound_to_it():
  def program(wrap):
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(scale, iterator, shift=0):
      total.assign_add(tf.reduce_sum(tf.strings.to_hash_bucket_fast(next(iterator), 9)) * scale + shift)
      return total.read_value()

    wrapped = wrap(functools.partial(step, 3, shift=1))
    return loops.epochs(wrapped, loops.words()), wrapped

  loops.compare(program)


if __name__ == "__main__":
  cases.main(globals())
