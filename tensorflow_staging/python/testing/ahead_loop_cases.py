# SPDX-License-Identifier: Apache-2.0
"""Loops of one's own with `tf.staging.ahead`, compared with the same loops without; run by ahead/ahead_test.py."""

import contextlib
import functools
import gc
import itertools
import pathlib
import subprocess
import sys
import tempfile
import time
import weakref

import cases
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)  # Sums in one order.
WORDS = ["a", "b", "c", "a", "q", "b", "z"] * 3


def plain(step):
  return step


def staged(**options):
  return lambda step: tf.staging.ahead(step, **{"capacity": 4, **options})


def drain(step, iterator, *args):
  """Calls the step until the data ends; returns what it has returned."""
  results = []
  while True:
    try:
      results.append(tf.nest.map_structure(lambda t: t.numpy().tolist(), step(iterator, *args)))
    except (tf.errors.OutOfRangeError, StopIteration):
      return results


def count_of(step):
  """Returns whether the step runs ahead at the moment."""
  return len(step.stages())


def compare(program, **options):
  """Runs a program (wrap -> (values, wrapped step)) without and with a stage; the values must be equal, and staged."""
  expected, _ = program(plain)
  got, step = program(staged(**options))
  assert got == expected, f"{got} != {expected}"
  assert step.why_not is None, step.why_not


def epochs(step, dataset, number=3):
  return [drain(step, iter(dataset)) for _ in range(number)]


def words(batch=2):
  return tf.data.Dataset.from_tensor_slices(WORDS).batch(batch)


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
    return epochs(wrapped, words()), wrapped

  compare(program)


def case_a_generator_draws_as_without_a_stage():
  def program(wrap):
    total = tf.Variable(0.0)
    generator = tf.random.Generator.from_seed(3)

    @tf.function
    def step(iterator):
      noise = generator.uniform([2]) + tf.strings.to_number(next(iterator))
      total.assign_add(tf.reduce_sum(noise))
      return noise

    wrapped = wrap(step)
    dataset = tf.data.Dataset.from_tensor_slices(["1", "2", "3", "4", "5", "6"]).batch(2)
    values, states = [], []
    for _ in range(3):
      iterator = iter(dataset)
      values.append(wrapped(iterator).numpy().tolist())  # The epoch is left early: records are dropped.
      states.append(generator.state.numpy().tolist())
    return (values, states, epochs(wrapped, dataset), total.numpy()), wrapped

  compare(program)


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
    return epochs(wrapped, tf.data.Dataset.from_tensor_slices(["1", "2", "3"]).batch(1)), wrapped

  compare(program)


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

  compare(program)


def case_outputs_that_the_region_computes():
  def program(wrap):
    steps = tf.Variable(0)

    @tf.function
    def step(iterator):
      text = next(iterator)
      tf.debugging.assert_less(tf.strings.length(text), 100)
      steps.assign_add(1)
      return {"text": tf.strings.upper(text), "raw": text}, steps.read_value()

    wrapped = wrap(step)
    return epochs(wrapped, words()), wrapped

  compare(program)


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
    return epochs(wrapped, words()), wrapped

  compare(program)


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
  got = epochs(wrapped, words(), 1)
  assert wrapped.why_not is None, wrapped.why_not
  total, expected = [0] * 9, []
  for batch in words():
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
    return (epochs(wrapped, words()), total.numpy()), wrapped

  compare(program)


def case_other_arguments_beside_the_iterator():
  def program(wrap):
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(iterator, factors):
      ids = tf.strings.to_hash_bucket_fast(next(iterator), 9)
      total.assign_add(tf.reduce_sum(factors) * tf.reduce_sum(ids))
      return ids, total.read_value()

    wrapped = wrap(step)
    iterator = iter(words())
    values = []
    for i in range(8):
      ids, now = wrapped(iterator, factors=tf.ones([i % 3 + 1], tf.int64))
      values.append((ids.numpy().tolist(), now.numpy()))
    return values, wrapped

  compare(program)


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
    return epochs(wrapped, words().take(8)), wrapped

  compare(program)


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
      iterators = {"words": iter(words()), "numbers": iter(tf.data.Dataset.range(rows))}
      values.append(drain(wrapped, iterators, tf.constant(3, tf.int64)))
    return values, wrapped

  compare(program)


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
    return drain(wrapped, iter(words(1)), iter(tf.data.Dataset.range(100))), wrapped

  compare(program)


def case_a_checkpoint_of_several_iterators():
  def program(wrap):
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(one, two):
      ids = tf.strings.to_hash_bucket_fast(next(one), 99) + next(two)
      total.assign_add(tf.reduce_sum(ids))
      return ids, next(one)

    wrapped = wrap(step)
    one, two = iter(words(1)), iter(tf.data.Dataset.range(100))
    checkpoint = tf.train.Checkpoint(one=one, two=two)
    with tempfile.TemporaryDirectory() as folder:
      values = [tf.nest.map_structure(lambda t: t.numpy().tolist(), wrapped(one, two)) for _ in range(3)]
      path = checkpoint.write(folder + "/c")
      values.append(drain(wrapped, one, two))
      checkpoint.read(path)
      values.append(drain(wrapped, one, two))
    return values, wrapped

  compare(program)


def case_two_iterators_in_turns():
  def program(wrap):
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(iterator):
      total.assign_add(tf.reduce_sum(tf.strings.to_hash_bucket_fast(next(iterator), 9)))
      return total.read_value()

    wrapped = wrap(step)
    one, two = iter(words()), iter(words(2))
    values = [(wrapped(one).numpy(), wrapped(two).numpy()) for _ in range(9)]
    return values, wrapped

  compare(program)


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

  compare(program)


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

  compare(program)


def numbers(texts):
  return tf.data.Dataset.from_tensor_slices(texts)


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
    iterator = iter(numbers(["1", "2", "three", "4", "five", "6"]))
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

  compare(program)


def case_several_threads_keep_the_order_of_the_data():
  total = tf.Variable(0.0)

  @tf.function
  def step(iterator):
    number = tf.strings.to_number(next(iterator))
    total.assign_add(number)
    return number

  wrapped = tf.staging.ahead(step, capacity=2, num_threads=3)
  for size in list(range(1, 12)) * 5:
    got = drain(wrapped, iter(numbers([str(i) for i in range(size)])))
    assert got == [float(i) for i in range(size)], (size, got)


def case_several_threads_draw_and_fail_as_one():
  def program(wrap):
    generator = tf.random.Generator.from_seed(3)
    total = tf.Variable(0.0)

    @tf.function
    def step(iterator):
      text = next(iterator)
      # Records take as long as their numbers say, so those of several threads are ready in another order.
      size = tf.strings.to_number(text, tf.int32)
      noise = generator.uniform([size, 50])
      total.assign_add(tf.reduce_sum(noise))
      return size, tf.reduce_sum(tf.linalg.matmul(noise, noise, transpose_a=True))

    step, values = wrap(step), []
    for epoch in range(3):
      iterator = iter(numbers([str(i * 331 % 997 + 1) if i % 5 != 3 else f"x{i}" for i in range(40)]))
      for turn in itertools.count():
        try:
          if turn % 13 == 12:
            values.append(next(iterator).numpy())
          values.append([value.numpy() for value in step(iterator)])
        except tf.errors.InvalidArgumentError:
          values.append("failed")
        except (tf.errors.OutOfRangeError, StopIteration):
          break
        if epoch == 1 and turn == 20:
          break
      values.append(generator.normal([2]).numpy().tolist())
    return values, step

  compare(program, num_threads=3)


def case_the_number_of_threads_is_chosen_over_several_iterators():
  total = tf.Variable(0, dtype=tf.int64)

  def slow(number):
    time.sleep(0.02)
    return number

  @tf.function
  def step(iterator):
    number = tf.numpy_function(slow, [next(iterator)], tf.int64, stateful=False)
    total.assign_add(number)
    return number

  wrapped = tf.staging.ahead(step, num_threads=tf.data.AUTOTUNE)
  for size in (3, 20, 200):
    got = drain(wrapped, iter(tf.data.Dataset.range(size)))
    assert got == list(range(size)), got
  iterator = iter(tf.data.Dataset.range(10**6))
  wrapped(iterator)
  stats, = tf.staging.stats(wrapped)
  # The third one has needed more, and the fourth one begins with them.
  assert stats.num_threads > 1 and stats.tunes_threads, stats
  assert stats.keeps_order and "any order" not in str(stats), stats


def case_the_capacity_is_chosen_over_several_iterators():
  total = tf.Variable(0, dtype=tf.int64)
  # By turns many records come at once, and none for the time of eight steps, however long a busy machine makes a step.
  pause = 0.16

  def slow_at_times(number):
    time.sleep(pause if number % 16 == 0 else 0)
    return number * 2

  @tf.function
  def step(iterator):
    number = tf.numpy_function(slow_at_times, [next(iterator)], tf.int64, stateful=False)
    total.assign_add(number)
    return number

  wrapped = tf.staging.ahead(step)
  capacity = 0
  for _ in range(20):
    iterator = iter(tf.data.Dataset.range(64))
    wrapped(iterator)
    stats, = tf.staging.stats(wrapped)
    assert stats.capacity >= capacity, (stats, capacity)  # It begins with what was found.
    begin = time.monotonic()
    for _ in range(63):
      wrapped(iterator)
      time.sleep(0.02)
    seconds = (time.monotonic() - begin) / 63
    stats, = tf.staging.stats(wrapped)
    capacity = stats.capacity
    if capacity > 4:
      break
    # Not the median: on a busy machine, a few steps that take long use up the pause. Those that have waited for it add
    # at most as much as a step takes.
    pause = max(0.16, 8 * seconds)
  assert capacity > 4, stats
  iterator = iter(tf.data.Dataset.range(64))
  wrapped(iterator)
  stats, = tf.staging.stats(wrapped)
  assert stats.capacity == capacity, (stats, capacity)


def case_an_error_is_not_lost_to_the_end_of_the_data():
  @tf.function
  def step(iterator):
    return tf.strings.to_number(next(iterator))

  wrapped = tf.staging.ahead(step, capacity=2, num_threads=3)
  for _ in range(20):
    iterator, failed, got = iter(numbers(["1", "2", "x"])), 0, 0
    while True:
      try:
        wrapped(iterator)
        got += 1
      except tf.errors.InvalidArgumentError:
        failed += 1
      except tf.errors.OutOfRangeError:
        break
    assert (got, failed) == (2, 1), (got, failed)


def threads_of_stages():
  names = []
  for path in pathlib.Path("/proc/self/task").glob("*/comm"):
    try:
      names.append(path.read_text().strip())
    except OSError:
      continue
  return [name for name in names if "tested" in name]


def wait_until(condition):
  deadline = time.monotonic() + 10
  while not condition():
    assert time.monotonic() < deadline, "it does not come to that"
    gc.collect()
    time.sleep(0.01)


def case_threads_end_with_their_iterator_and_their_step():
  @tf.function
  def tested_step(iterator):
    return tf.strings.to_number(next(iterator))

  wrapped = tf.staging.ahead(tested_step, capacity=2, num_threads=1)
  endless = numbers(["1", "2"]).repeat()
  one, two = iter(endless), iter(endless)
  wrapped(one)
  wrapped(two)
  assert len(threads_of_stages()) == 2, threads_of_stages()
  stages = [weakref.ref(stage) for stage in wrapped.stages()]
  assert count_of(wrapped) == 2
  del one
  wait_until(lambda: count_of(wrapped) == 1)
  wrapped = None
  wait_until(lambda: all(stage() is None for stage in stages))
  wait_until(lambda: not threads_of_stages())
  assert next(two).numpy() in (b"1", b"2")


def case_iterators_do_not_stay():
  @tf.function
  def tested_step(iterator):
    return tf.strings.to_number(next(iterator))

  wrapped = tf.staging.ahead(tested_step, capacity=2)
  iterators = []
  for _ in range(5):
    dataset = tf.data.Dataset.range(10**6).map(lambda i: tf.numpy_function(str, [i], tf.string))
    iterator = iter(dataset)
    iterators.append(weakref.ref(iterator))
    assert [float(wrapped(iterator)) for _ in range(3)] == [0.0, 1.0, 2.0]
    del iterator, dataset
    # Without the garbage collector.
    assert iterators[-1]() is None
    assert count_of(wrapped) == 0
  assert not threads_of_stages()


def case_statistics():
  wrapped = tf.staging.ahead(
      tf.function(lambda iterator: tf.strings.to_number(next(iterator))), capacity=3, num_threads=1, name="s")
  assert tf.staging.stats(wrapped) == []
  iterator = iter(numbers(["1", "2"]).repeat())
  for _ in range(5):
    wrapped(iterator)
  stats, = tf.staging.stats(wrapped)
  assert (stats.name, stats.taken, stats.capacity, stats.num_threads, stats.running) == ("s", 5, 3, 1, True), stats
  assert stats.keeps_order and "any order" not in str(stats), stats
  wrapped.stop()
  assert tf.staging.stats(wrapped) == []


def why_not(step, *iterators):
  wrapped = tf.staging.ahead(step)
  wrapped(*iterators)
  assert count_of(wrapped) == 0
  return wrapped.why_not


def case_what_is_not_staged_runs_as_it_is_and_says_why():
  variable = tf.Variable(1.0)
  endless = numbers(["1", "2"]).repeat()

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
  def all_at_once(iterator):
    total = tf.constant(0)
    for text in iterator:
      total += tf.strings.length(text)
    return total

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
  assert "can run ahead" in why_not(only_read, iter(floats)), why_not(only_read, iter(floats))
  assert "other than by next()" in why_not(optional, iter(endless))
  assert "other than by next()" in why_not(all_at_once, iter(numbers(["1", "2"])))
  assert "reads the iterator in a branch" in why_not(in_a_branch, iter(endless), tf.constant(True))
  assert "which reads the iterator" in why_not(second_after_training, iter(endless))
  assert "no tf.function" in why_not(eager, iter(endless))
  no_iterator = why_not(tf.function(lambda x: x + 1), tf.constant(1))
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
      inputs, results = {"iterator": iter(words())}, []
      for _ in range(3):
        result = wrapped(inputs, **given)
        assert result.pop("none") is None
        results.append({key: value.numpy().tolist() for key, value in result.items()})
      values.append(results)
    return values, wrapped

  compare(program)


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
    dataset = words(1).map(lambda text: {"text": text, "length": tf.strings.length(text)})
    for turn in (1, 4, 12):  # How many calls need the same.
      iterator = iter(dataset)
      for i in range(len(WORDS)):
        given = [{}, {"log": True}, {"table": "two"}][i // turn % 3]
        values.append(tf.nest.map_structure(lambda t: t.numpy().tolist(), wrapped(iterator, **given)))
        if turn == 12 and i == 3:
          with tf.GradientTape():
            values.append(wrapped(iterator).numpy())
            i += 1
        if i == len(WORDS) - 2:
          break
      values.append(drain(wrapped, iterator))
    return values, wrapped

  expected, _ = program(plain)
  got, step = program(staged())
  assert got == expected, f"{got} != {expected}"
  assert "GradientTape" in step.why_not, step.why_not


def case_an_error_waits_for_its_step_when_other_records_are_needed():
  def program(wrap):
    total = tf.Variable(0.0)

    @tf.function
    def step(iterator, scale=1.0):
      number = tf.strings.to_number(next(iterator)) * scale
      total.assign_add(number)
      return total.read_value()

    wrapped = wrap(step)
    iterator = iter(numbers(["1", "2", "three", "4", "5"]).map(lambda text: tf.strings.join([text, ""])))
    values = []
    for i in range(7):
      try:
        values.append(wrapped(iterator, scale=1.0 if i < 1 else 2.0).numpy())
      except tf.errors.OpError as error:
        values.append(type(error).__name__)
    return values, wrapped

  compare(program)


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
    iterator, scale = iter(words(1)), tf.constant(2, tf.int64)
    return [step(iterator, scale).numpy() for step in [one] * 5 + [two] * 3 + [one, two] * 4], one

  compare_values(program)


def compare_values(program):
  expected, _ = program(plain)
  got, _ = program(staged())
  assert got == expected, f"{got} != {expected}"


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

  compare(program)


def case_a_step_goes_on_after_it_has_failed_between_its_draws():
  def program(wrap):
    generator = tf.random.Generator.from_seed(3)

    @tf.function
    def step(iterator, most):
      number = tf.strings.to_number(next(iterator))
      with tf.control_dependencies([tf.debugging.assert_less(number, most)]):
        return generator.uniform([]) + number

    wrapped = wrap(step)
    iterator = iter(numbers([str(i) for i in range(20)]))
    values = []
    for i in range(20):
      try:
        values.append(wrapped(iterator, tf.constant(100.0 if i % 5 else 0.0)).numpy())
      except tf.errors.InvalidArgumentError:
        values.append("fails")
    return values, wrapped

  compare_values(program)


def case_a_function_with_arguments_bound_to_it():
  def program(wrap):
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(scale, iterator, shift=0):
      total.assign_add(tf.reduce_sum(tf.strings.to_hash_bucket_fast(next(iterator), 9)) * scale + shift)
      return total.read_value()

    wrapped = wrap(functools.partial(step, 3, shift=1))
    return epochs(wrapped, words()), wrapped

  compare(program)


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
      values.append(drain(wrapped, iter(numbers(["1", "2", "3"]))))
    return values, wrapped

  compare(program)


def case_a_function_that_has_drawn_with_a_seed_before_is_not_staged():
  def program(wrap):
    @tf.function
    def step(iterator):
      return tf.strings.to_number(next(iterator)) + tf.random.uniform([], seed=7)

    values = drain(step, iter(numbers(["1", "2"])))
    wrapped = wrap(step)
    return values + drain(wrapped, iter(numbers(["1", "2"]))), wrapped

  expected, _ = program(plain)
  got, step = program(staged())
  assert got == expected, f"{got} != {expected}"
  assert "has drawn without a stage before" in step.why_not, step.why_not


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


def case_the_statistics_say_what_the_stage_gained():
  total = tf.Variable(0, dtype=tf.int64)

  @tf.function
  def step(iterator):
    number = tf.strings.length(tf.strings.as_string(next(iterator) * 2))
    total.assign_add(tf.cast(number, tf.int64))
    return number

  wrapped = tf.staging.ahead(step, capacity=4)
  iterator = iter(tf.data.Dataset.range(10**9))
  # The last run may not have been timed yet, and a long wait of it for room have been counted.
  for _ in range(20):
    for _ in range(300):
      wrapped(iterator)
    stats, = tf.staging.stats(wrapped)
    if stats.region.count >= 300 and stats.region.total_seconds > 0:
      break
  assert stats.region.count >= 300 and stats.region.total_seconds > 0, stats.region
  assert "too few to say" not in str(stats), stats


def case_explain_says_what_runs_ahead():
  @tf.function
  def step(iterator):
    return tf.gather(weights, tf.strings.to_hash_bucket_fast(next(iterator), 9))

  weights = tf.Variable(tf.zeros([9]))
  wrapped = tf.staging.ahead(step, capacity=2)
  assert "not been called" in str(tf.staging.explain(wrapped))
  wrapped(iter(words()))
  explained, = tf.staging.explain(wrapped).steps
  assert "StringToHashBucketFast" in explained.nodes
  tensor, = explained.boundary
  assert (tensor.dtype, tensor.shape.rank) == (tf.int64, 1)
  assert any("Variable" in node.why for node in explained.outside), explained.outside
  assert "2 nodes run ahead, and a record carries 1 tensor" in str(explained)
  total = tf.Variable(0.0)
  unstaged = tf.staging.ahead(tf.function(lambda iterator: total.assign_add(next(iterator))))
  unstaged(iter(tf.data.Dataset.from_tensors(1.0)))
  assert "runs without a stage: nothing" in str(tf.staging.explain(unstaged))


def case_a_stage_ends_together_with_its_python_generator():
  program = """
import tensorflow as tf
total = tf.Variable(0, dtype=tf.int64)
@tf.function
def step(iterator):
  total.assign_add(next(iterator) * 2)
  tf.debugging.assert_negative(total)
step = tf.staging.ahead(step, capacity=3)
data = tf.data.Dataset.from_generator(lambda: iter(range(1000)), output_signature=tf.TensorSpec([], tf.int64))
try:
  step(iter(data))
except tf.errors.InvalidArgumentError:
  pass
"""
  subprocess.run([sys.executable, "-c", program], timeout=60, check=True, capture_output=True)


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
    return drain(wrapped, iter(dataset)), wrapped

  expected, _ = program(plain)
  got, step = program(staged())
  assert got == expected
  assert "which it changes" in step.why_not, step.why_not


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

  compare(program)


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

  compare(program)
  compare(program, capacity=1)


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

  compare(program)


def case_programs_end_at_once():
  program = """
import tensorflow as tf, os, signal, sys, time, types
@tf.function
def step(iterator):
  return tf.strings.to_number(next(iterator))
step = tf.staging.ahead(step, capacity=2)
def slow(i, seconds={seconds}):
  time.sleep(seconds if i else 0.05)
  return str(int(i))
data = tf.data.Dataset.range(10**9).map(lambda i: tf.py_function(slow, [i], tf.string))
{end}
"""
  read = "iterator = iter(data)\nstep(iterator)\n"
  # A shell that runs the tests in the background may ignore SIGINT, and programs inherit that.
  interrupted = "signal.signal(signal.SIGINT, signal.default_int_handler); os.kill(os.getpid(), signal.SIGINT)"
  # The interpreter deletes what a module has, while the dataset's own prefetch is in its Python function.
  deleted = """
sys.modules["m"] = module = types.ModuleType("m")
module.iterator = iter(data.prefetch(8))
module.iterator.step = step
step(module.iterator)
del module, step
"""
  ends = {
      (0.05, read): {0},
      (0.05, f"{read}raise SystemExit(3)"): {3},
      (0.05, f"{read}1 / 0"): {1},
      (0.05, f"{read}{interrupted}; step(iterator)"): {1, -2},
      (0.5, deleted): {0},
      (1000, deleted): {0},
  }
  with contextlib.ExitStack() as stack:
    # Together: most of their time is the import.
    running = {}
    for seconds, end in ends:
      source = program.format(seconds=seconds, end=end)
      running[seconds, end] = stack.enter_context(subprocess.Popen(
          [sys.executable, "-c", source], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
    for process in running.values():
      stack.callback(process.kill)
    for end, process in running.items():
      _, stderr = process.communicate(timeout=100)
      assert process.returncode in ends[end], (end, process.returncode, stderr[-2000:])


if __name__ == "__main__":
  cases.main(globals())
