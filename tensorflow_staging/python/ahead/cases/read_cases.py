# SPDX-License-Identifier: Apache-2.0
"""Steps that read several times or from several iterators, and several steps that read one."""

import cases
import compared_loops as loops
import tensorflow as tf


def case_two_reads_make_one_record():
  def program(wrap):
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def hashed(iterator):
      return tf.strings.to_hash_bucket_fast(next(iterator), 9)

    @tf.function
    def step(iterator):
      first = tf.strings.lower(next(iterator))
      total.assign_add(tf.reduce_sum(hashed(iterator)))
      return first, hashed(iterator), next(iterator), total.read_value()

    wrapped = wrap(step)
    # If a read of a step finds the end, the step may or may not have trained.
    return loops.epochs(wrapped, loops.words().take(8)), wrapped

  loops.compare(program)


def case_several_iterators_make_one_record():
  def program(wrap):
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(iterators, factor):
      ids = tf.strings.to_hash_bucket_fast(next(iterators["words"]), 9)
      total.assign_add(tf.reduce_sum(ids) * next(iterators["numbers"]) * factor)
      return ids, total.read_value()

    wrapped = wrap(step)
    values = []
    for rows in (5, 20):  # The one ends first, then the other.
      iterators = {"words": iter(loops.words()), "numbers": iter(tf.data.Dataset.range(rows))}
      values.append(loops.drain(wrapped, iterators, tf.constant(3, tf.int64)))
    return values, wrapped

  loops.compare(program)


def case_two_reads_in_a_loop():
  def program(wrap):
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(iterator, other):
      for _ in tf.range(2):
        text = tf.strings.join([next(iterator), next(iterator)])
        total.assign_add(tf.reduce_sum(tf.strings.to_hash_bucket_fast(text, 9)) * next(other))
      return total.read_value()

    wrapped = wrap(step)
    return loops.drain(wrapped, iter(loops.words(1)), iter(tf.data.Dataset.range(100))), wrapped

  loops.compare(program)


def case_two_iterators_in_turns():
  def program(wrap):
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(iterator):
      total.assign_add(tf.reduce_sum(tf.strings.to_hash_bucket_fast(next(iterator), 9)))
      return total.read_value()

    wrapped = wrap(step)
    one, two = iter(loops.words()), iter(loops.words(2))
    values = [(wrapped(one).numpy(), wrapped(two).numpy()) for _ in range(9)]
    return values, wrapped

  loops.compare(program)


def case_calls_that_need_other_records_lose_none():
  tables = {
      name: tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant(ids, tf.int64)), -1)
      for name, ids in {"one": [1, 2], "two": [3, 4]}.items()}

  def program(wrap):
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def inner(iterator, table):
      return tables[table].lookup(next(iterator)["text"])

    @tf.function
    def step(iterator, table="one", log=False):
      ids = inner(iterator, table)
      total.assign_add(tf.reduce_sum(ids))
      return (ids, total.read_value()) if log else total.read_value()

    wrapped = wrap(step)
    values = []
    dataset = loops.words(1).map(lambda text: {"text": text, "length": tf.strings.length(text)})
    for turn in (1, 4, 12):  # How many calls need the same.
      iterator = iter(dataset)
      for i in range(len(loops.WORDS)):
        given = [{}, {"log": True}, {"table": "two"}][i // turn % 3]
        values.append(tf.nest.map_structure(lambda t: t.numpy().tolist(), wrapped(iterator, **given)))
        if turn == 12 and i == 3:
          with tf.GradientTape():
            values.append(wrapped(iterator).numpy())
            i += 1
        if i == len(loops.WORDS) - 2:
          break
      values.append(loops.drain(wrapped, iterator))
    return values, wrapped

  expected, _ = program(loops.plain)
  got, step = program(loops.staged())
  assert got == expected, f"{got} != {expected}"
  # That was one call.
  assert step.why_not is None and any("GradientTape" in why_not for why_not in step._told), step._told


def case_several_steps_read_one_iterator():
  def program(wrap):
    total = tf.Variable(0, dtype=tf.int64)

    def make(buckets):
      @tf.function
      def step(iterator, scale):
        total.assign_add(tf.reduce_sum(tf.strings.to_hash_bucket_fast(next(iterator), buckets)) * scale)
        return total.read_value()
      return wrap(step)

    one, two = make(7), make(9)
    iterator, scale = iter(loops.words(1)), tf.constant(2, tf.int64)
    return [step(iterator, scale).numpy() for step in [one] * 5 + [two] * 3 + [one, two] * 4], one

  loops.compare_values(program)


def case_another_trace_takes_no_records_of_which_it_needs_others():
  total = tf.Variable(0, dtype=tf.int64)

  @tf.function
  def step(iterator, x):
    total.assign_add(1)
    # TensorFlow folds the size into the part ahead, where the shape is known.
    return tf.size(x, tf.int64) + next(iterator) * 2

  wrapped = tf.staging.ahead(step, capacity=4)
  iterator = iter(tf.data.Dataset.range(100))
  assert [wrapped(iterator, tf.zeros([n])).numpy() for n in (1, 2, 2, 1)] == [1, 4, 6, 7]


def case_two_steps_read_an_iterator_by_turns():
  total = tf.Variable(0, dtype=tf.int64)

  @tf.function
  def step(iterator):
    number = next(iterator) * 2
    total.assign_add(number)
    return number

  first, second = (tf.staging.ahead(step, capacity=4) for _ in range(2))

  def with_tape(iterator):
    with tf.GradientTape():
      return first(iterator)

  iterator = iter(tf.data.Dataset.range(100))
  turns = [first, second, first, with_tape, first, second] * 4
  assert [turn(iterator).numpy() for turn in turns] == [2 * i for i in range(len(turns))]


if __name__ == "__main__":
  cases.main(globals())
