# SPDX-License-Identifier: Apache-2.0
"""Steps of strategies that ask whether there are elements, with a stage and without; run by ahead/ahead_test.py."""

import functools

import cases
import compared_loops as loops
import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
MIRRORED = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
ALONE = (tf.distribute.MirroredStrategy(["/cpu:0"]), tf.distribute.OneDeviceStrategy("/cpu:1"))
LETTERS = list("abcdefghijklm")


def letters(batch=3, **options):
  return tf.data.Dataset.from_tensor_slices(LETTERS).batch(batch, **options)


# Of the last step, one replica has no element, or no replica has a whole one.
KINDS = {
    "finite": letters(), "static": letters(drop_remainder=True), "endless": letters().repeat(),
    "unknown": letters().filter(lambda batch: batch[0] != "d")}


def iterator_of(strategy, dataset):
  """Returns an iterator that gives each replica the elements of the dataset by turns."""
  return iter(strategy.distribute_datasets_from_function(lambda _: dataset))


def hashed(words):
  return tf.strings.to_hash_bucket_fast(words, 999)


def summed(strategy, values):
  return strategy.reduce("SUM", values, axis=None)


def compare(program, **options):
  """As `compared_loops.compare`; also checks that strings are hashed ahead."""
  steps = []

  def noting(wrap):
    values, step = program(wrap)
    steps.append(step)
    return values, step

  loops.compare(noting, **options)
  told = str(tf.staging.explain(steps[-1]))
  assert "StringToHashBucketFast" in told, told


def results(step, iterator, calls):
  return [tf.nest.map_structure(lambda value: value.numpy().tolist(), step(iterator)) for _ in range(calls)]


def case_a_loop_over_the_iterator():

  def program(wrap, strategy, dataset):
    total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def some(iterator):
      steps = tf.constant(0)
      for words in iterator:
        ids = strategy.run(hashed, args=(words,))
        steps += 1
        if steps == 2:
          continue
        total.assign_add(tf.cast(steps, tf.int64) * summed(strategy, strategy.run(tf.reduce_sum, args=(ids,))))
        if steps == 3:
          break
      return steps, total.read_value()

    wrapped = wrap(some)
    # An epoch each, of which the last calls find the end.
    return [results(wrapped, iterator_of(strategy, dataset), 4) for _ in range(2)], wrapped

  for dataset in KINDS.values():
    compare(functools.partial(program, strategy=MIRRORED, dataset=dataset))
  for strategy in ALONE:
    for kind in ("finite", "endless"):
      compare(functools.partial(program, strategy=strategy, dataset=KINDS[kind]))


def case_a_step_asks_whether_there_is_an_element():

  def program(wrap, strategy, dataset, takes_each):
    with strategy.scope():
      generator = tf.random.Generator.from_seed(3)
    total, steps = tf.Variable(0, dtype=tf.int64), tf.Variable(0)

    def train(words):
      ids = hashed(words)
      return tf.reduce_sum(ids * generator.uniform(tf.shape(ids), maxval=99, dtype=tf.int64)), tf.size(words)

    @tf.function
    def step(iterator):
      element = iterator.get_next_as_optional()
      steps.assign_add(1)
      uses = element.has_value() if takes_each else tf.logical_and(element.has_value(), steps % 3 > 0)
      sizes = tf.constant(-1)
      if uses:
        losses, sizes = strategy.run(train, args=(element.get_value(),))
        total.assign_add(summed(strategy, losses))
        sizes = summed(strategy, sizes)
      return element.has_value(), total.read_value(), sizes

    wrapped = wrap(step)
    values = [results(wrapped, iterator_of(strategy, dataset), 7) for _ in range(2)]
    states = strategy.experimental_local_results(generator.state)
    return (values, [state.numpy().tolist() for state in states]), wrapped

  for takes_each in (True, False):
    compare(functools.partial(program, strategy=MIRRORED, dataset=KINDS["finite"], takes_each=takes_each))
  compare(functools.partial(program, strategy=MIRRORED, dataset=KINDS["endless"], takes_each=True))
  compare(functools.partial(program, strategy=ALONE[1], dataset=KINDS["unknown"], takes_each=True))


def case_an_error_of_the_part_ahead_ends_a_loop():

  def program(wrap):
    total = tf.Variable(0, dtype=tf.int64)

    def checked(words):
      with tf.control_dependencies([tf.debugging.assert_none_equal(words, "h")]):
        return tf.reduce_sum(hashed(words))

    @tf.function
    def all_of(iterator):
      for words in iterator:
        total.assign_add(summed(MIRRORED, MIRRORED.run(checked, args=(words,))))
      return total.read_value()

    wrapped = wrap(all_of)
    return loops.results_or_errors(wrapped, iterator_of(MIRRORED, letters(2)), total), wrapped

  compare(program)


def case_something_else_reads_beside_a_loop():

  def program(wrap):

    @tf.function
    def two(iterator):
      total, steps = tf.constant(0, tf.int64), tf.constant(0)
      for words in iterator:
        total += summed(MIRRORED, MIRRORED.run(lambda words: tf.reduce_sum(hashed(words)), args=(words,)))
        steps += 1
        if steps == 2:
          break
      return total

    wrapped, iterator = wrap(two), iterator_of(MIRRORED, letters(1))
    values = []
    for _ in range(3):
      values += results(wrapped, iterator, 1)
      beside = iterator.get_next_as_optional()
      if beside.has_value():
        values.append([value.numpy().tolist() for value in MIRRORED.experimental_local_results(beside.get_value())])
    return values, wrapped

  compare(program)


def case_the_end_of_data_that_should_have_none_ends_the_step():

  def program(wrap):

    @tf.function
    def step(iterator):
      element = tf.experimental.Optional.from_value(next(iterator))
      return tf.reduce_sum(hashed(element.get_value())) if element.has_value() else tf.constant(-1, tf.int64)

    wrapped = wrap(step)
    return loops.epochs(wrapped, letters()), wrapped

  compare(program)


def case_a_loop_that_is_not_staged_says_why():
  in_all = lambda words: summed(MIRRORED, MIRRORED.run(lambda words: tf.reduce_sum(hashed(words)), args=(words,)))

  @tf.function
  def first_and_the_others(iterator):
    total = in_all(next(iterator))
    for words in iterator:
      total -= in_all(words)
    return total

  @tf.function
  def two_loops(iterator):
    total = tf.constant(0, tf.int64)
    for words in iterator:
      total += in_all(words)
      if total > 0:
        break
    for words in iterator:
      total -= in_all(words)
    return total

  expected = [in_all(words).numpy() for words in iterator_of(MIRRORED, letters())]
  for function in (first_and_the_others, two_loops):
    step = tf.staging.ahead(function)
    assert step(iterator_of(MIRRORED, letters())) == expected[0] - sum(expected[1:])
    assert step.why_not is not None
    if function is first_and_the_others:
      assert "by next() beside that" in step.why_not, step.why_not


if __name__ == "__main__":
  cases.main(globals())
