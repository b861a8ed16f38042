# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of iterators that are read ahead."""

import tempfile

import cases
import compared_loops as loops
import tensorflow as tf


def case_a_checkpoint_of_several_iterators():
  def program(wrap):
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(one, two):
      ids = tf.strings.to_hash_bucket_fast(next(one), 99) + next(two)
      total.assign_add(tf.reduce_sum(ids))
      return ids, next(one)

    wrapped = wrap(step)
    one, two = iter(loops.words(1)), iter(tf.data.Dataset.range(100))
    checkpoint = tf.train.Checkpoint(one=one, two=two)
    with tempfile.TemporaryDirectory() as folder:
      values = [tf.nest.map_structure(lambda t: t.numpy().tolist(), wrapped(one, two)) for _ in range(3)]
      path = checkpoint.write(folder + "/c")
      values.append(loops.drain(wrapped, one, two))
      checkpoint.read(path)
      values.append(loops.drain(wrapped, one, two))
    return values, wrapped

  loops.compare(program)


def case_a_checkpoint_keeps_what_waits():
  def make(wrap):
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(iterator):
      number = tf.strings.to_number(next(iterator), tf.int64)
      total.assign_add(number)
      return number

    iterator = iter(tf.data.Dataset.range(30).map(tf.strings.as_string).shuffle(8, seed=2))
    return total, wrap(step), iterator, tf.train.Checkpoint(total=total, iterator=iterator)

  def program(wrap):
    with tempfile.TemporaryDirectory() as folder:
      total, step, iterator, checkpoint = make(wrap)
      values = [step(iterator).numpy() for _ in range(5)]
      path = checkpoint.write(folder + "/c")
      after = [step(iterator).numpy() for _ in range(6)]
      _, other_step, other_iterator, other = make(wrap)
      other.read(path).assert_consumed()
      resumed = [other_step(other_iterator).numpy() for _ in range(6)]
      checkpoint.read(path).assert_consumed()
      back = [step(iterator).numpy() for _ in range(25)]
      assert after == resumed == back[:6], (after, resumed, back)
      return (values, after, back, total.numpy()), step

  loops.compare(program)


def case_a_checkpoint_keeps_what_a_generator_has_drawn_for_what_waits():
  def make(wrap):
    generator = tf.random.Generator.from_seed(3)
    total = tf.Variable(0.0)

    @tf.function
    def step(iterator):
      # How much it draws depends on the element.
      number = next(iterator)
      noise = tf.reduce_sum(generator.uniform([number + 1])) + tf.strings.to_number(tf.strings.as_string(number))
      total.assign_add(noise)
      return noise

    iterator = iter(tf.data.Dataset.range(60))
    return wrap(step), iterator, generator, tf.train.Checkpoint(total=total, generator=generator, iterator=iterator)

  def program(wrap):
    step, iterator, generator, checkpoint = make(wrap)
    with tempfile.TemporaryDirectory() as folder:
      first = checkpoint.write(folder + "/first")  # Nothing waits.
      values = [step(iterator).numpy() for _ in range(5)]
      path = checkpoint.write(folder + "/c")
      after = [step(iterator).numpy() for _ in range(20)]
      other_step, other_iterator, _, other = make(wrap)
      other.read(path).assert_consumed()
      resumed = [other_step(other_iterator).numpy() for _ in range(20)]
      checkpoint.read(path).assert_consumed()
      back = [step(iterator).numpy() for _ in range(20)]
      assert after == resumed == back, (after, resumed, back)
      checkpoint.read(first).assert_consumed()
      again = [step(iterator).numpy() for _ in range(5)]
      assert again == values, (again, values)
      return (values, after, generator.state.numpy().tolist()), step

  loops.compare(program)
  loops.compare(program, capacity=1)


def case_a_checkpoint_when_other_records_are_needed():
  def program(wrap):
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(iterator, scale=1):
      total.assign_add(tf.strings.to_number(next(iterator), tf.int64) * scale)
      return total.read_value()

    wrapped = wrap(step)
    iterator = iter(tf.data.Dataset.range(40).map(tf.strings.as_string))
    checkpoint = tf.train.Checkpoint(total=total, iterator=iterator)
    with tempfile.TemporaryDirectory() as folder:
      values = [wrapped(iterator).numpy() for _ in range(3)]
      path = checkpoint.write(folder + "/c")
      values += [wrapped(iterator, scale=2).numpy() for _ in range(2)]
      between = checkpoint.write(folder + "/d")
      values += [wrapped(iterator, scale=2).numpy() for _ in range(2)]
      checkpoint.read(between)
      values += [wrapped(iterator).numpy() for _ in range(2)]
      checkpoint.read(path)
      values += [wrapped(iterator).numpy() for _ in range(12)]
      checkpoint.read(path)
      values.append(wrapped(iterator).numpy())
      values += [wrapped(iterator, scale=2).numpy() for _ in range(12)]
      checkpoint.read(checkpoint.write(folder + "/d"))
      values += [wrapped(iterator, scale=2).numpy() for _ in range(3)]
    return values, wrapped

  loops.compare(program)


if __name__ == "__main__":
  cases.main(globals())
