# SPDX-License-Identifier: Apache-2.0
"""What each replica of a `MirroredStrategy` gets of a stage, compared with none; run by ahead/ahead_test.py."""

import contextlib

import cases
import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
MIRRORED = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
LETTERS = list("abcdefghijklm")


def hashed(words):
  return tf.strings.to_hash_bucket_fast(getattr(words, "values", words), 1000)


def got_by_replicas(dataset, wrap, beside=0):
  """Reads data in a loop, and in each `beside`th step beside it; returns what the replicas got, and the step."""
  steps = tf.Variable(0)

  @wrap
  @tf.function
  def step(iterator):
    steps.assign_add(1)
    return MIRRORED.run(hashed, args=(next(iterator),))

  iterator = iter(MIRRORED.distribute_datasets_from_function(lambda _: dataset))
  got = []
  with contextlib.suppress(tf.errors.OutOfRangeError, StopIteration):
    while True:
      if beside and len(got) % beside == beside - 1:
        values = map(hashed, MIRRORED.experimental_local_results(next(iterator)))
      else:
        values = MIRRORED.experimental_local_results(step(iterator))
      got.append([value.numpy().tolist() for value in values])
  return got, step


def check_replicas(dataset, steps, **options):
  expected, _ = got_by_replicas(dataset, lambda step: step, **options)
  got, step = got_by_replicas(dataset, tf.staging.ahead, **options)
  assert got == expected, (got, expected)
  assert len(got) == steps, got
  assert step.why_not is None, step.why_not
  return got


def case_the_last_step_may_have_data_for_some_replicas_only():
  words = tf.data.Dataset.from_tensor_slices(LETTERS)
  assert check_replicas(words.batch(3), steps=3)[-1][1] == []
  # Without static shapes, there is no such step.
  check_replicas(words.batch(3, drop_remainder=True), steps=2)
  check_replicas(words.filter(lambda word: word != "c").batch(3), steps=2)
  check_replicas(words.batch(3), steps=3, beside=2)
  check_replicas(words.batch(3, drop_remainder=True), steps=2, beside=2)


def case_replicas_get_ragged_and_sparse_elements():
  words = tf.data.Dataset.from_tensor_slices(["ab", "c", "def", "gh", "i"]).map(tf.strings.bytes_split)
  assert check_replicas(words.ragged_batch(1), steps=3)[-1][1] == []
  check_replicas(words.ragged_batch(1).map(lambda ragged: ragged.to_sparse()), steps=3)


def case_replicas_draw_from_generators_of_their_own():

  def drawn(wrap):
    with MIRRORED.scope():
      generator = tf.random.Generator.from_seed(3)
      sums = tf.Variable(tf.zeros([4]), aggregation=tf.VariableAggregation.SUM)

    def train(element):
      sums.assign_add(tf.cast(hashed(element)[0], tf.float32) * generator.uniform([4]))
      return tf.identity(sums)

    step = wrap(tf.function(lambda iterator: MIRRORED.run(train, args=(next(iterator),))))
    # Without an end: without a stage, a step that finds it draws for some replicas, and for others not.
    dataset = tf.data.Dataset.from_tensor_slices(LETTERS).batch(2).repeat()
    values = []
    for _ in range(2):
      iterator = iter(MIRRORED.distribute_datasets_from_function(lambda _: dataset))
      for _ in range(3):
        values.append([v.numpy().tolist() for v in MIRRORED.experimental_local_results(step(iterator))])
    states = MIRRORED.experimental_local_results(generator.state)
    return values, [state.numpy().tolist() for state in states], step

  expected, expected_states, _ = drawn(lambda step: step)
  values, states, step = drawn(tf.staging.ahead)
  assert (values, states) == (expected, expected_states), (values, states, expected, expected_states)
  assert "RngReadAndSkip" in str(tf.staging.explain(step)), str(tf.staging.explain(step))


def case_optionals_that_the_step_uses_itself_are_not_staged():

  def last(wrap):

    @wrap
    @tf.function
    def step(iterator):
      element = iterator.get_next_as_optional()
      return element.has_value()

    dataset = tf.data.Dataset.from_tensor_slices(LETTERS).batch(3)
    iterator = iter(MIRRORED.distribute_datasets_from_function(lambda _: dataset))
    return [bool(step(iterator)) for _ in range(4)], step

  expected, _ = last(lambda step: step)
  values, step = last(tf.staging.ahead)
  assert values == expected == [True, True, True, False], (values, expected)
  assert "uses the iterator other than by next()" in step.why_not, step.why_not


def case_the_threads_of_several_replicas_end_with_their_iterator():
  step = tf.staging.ahead(tf.function(lambda iterator: MIRRORED.run(hashed, args=(next(iterator),))))
  # A generator, which must live as long as the threads.
  dataset = tf.data.Dataset.from_generator(
      lambda: iter("abc" * 1000), output_signature=tf.TensorSpec([], tf.string)).batch(2)
  for _ in range(3):
    iterator = iter(MIRRORED.experimental_distribute_dataset(dataset))
    step(iterator)
    assert len(step.stages()) == 1
    del iterator
    assert not step.stages()


def case_another_strategy_runs_unstaged():
  strategy = tf.distribute.experimental.CentralStorageStrategy(["/cpu:0", "/cpu:1"], "/cpu:0")
  step = tf.staging.ahead(tf.function(lambda iterator: strategy.run(tf.strings.length, args=(next(iterator),))))
  iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(["a", "bc"]).batch(2)))
  assert [value.numpy().tolist() for value in strategy.experimental_local_results(step(iterator))] == [[1], [2]]
  assert "belongs to a tf.distribute strategy other than" in step.why_not, step.why_not


if __name__ == "__main__":
  cases.main(globals())
