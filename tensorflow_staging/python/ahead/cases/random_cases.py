# SPDX-License-Identifier: Apache-2.0
"""Random steps, nested at random, with `tf.staging.ahead` and without; run by ahead/ahead_test.py.

AHEAD_SEEDS sets how many (12). The seed decides the step, so a failure can be repeated.
"""

import functools
import os
import random

import cases
import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)  # Sums in one order.
# Grappler sees other functions where a step is divided, and rounds otherwise.
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
WORDS = np.random.RandomState(0).choice(["red", "Green", "blue", "x"], 17)
DEEPEST = 3


class State:
  """What a step may use besides its data."""

  def __init__(self):
    self.weights = tf.Variable(np.linspace(-1, 1, 7, dtype=np.float32))
    self.total = tf.Variable(0.0)
    self.table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["red", "blue"], [0.25, 0.5]), -1.0)
    self.changing = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, 0.0)
    self.generator = tf.random.Generator.from_seed(3)

  def values(self):
    return [self.weights.numpy().tolist(), self.total.numpy(), self.generator.state.numpy().tolist()]


# Each takes the state, texts and numbers (lists of vectors of one length), an iterator and a source of choices, and
# adds to the lists.
def _hash(state, texts, numbers, iterator, pick):
  numbers.append(tf.cast(tf.strings.to_hash_bucket_fast(pick(texts), 11), tf.float32) / 11)


def _upper(state, texts, numbers, iterator, pick):
  texts.append(tf.strings.join([tf.strings.upper(pick(texts)), pick(texts)]))


def _lookup(state, texts, numbers, iterator, pick):
  numbers.append(state.table.lookup(pick(texts)))


def _changing_lookup(state, texts, numbers, iterator, pick):
  text, number = pick(texts), pick(numbers)
  numbers.append(state.changing.lookup(text))
  state.changing.insert(text, number)


def _gather(state, texts, numbers, iterator, pick):
  numbers.append(tf.gather(state.weights, tf.strings.to_hash_bucket_fast(pick(texts), 7)))


def _multiply(state, texts, numbers, iterator, pick):
  numbers.append(tf.tanh(pick(numbers) * 1.5 - pick(numbers)))


def _train(state, texts, numbers, iterator, pick):
  state.total.assign_add(tf.reduce_sum(pick(numbers)))
  state.weights.assign(tf.tanh(state.weights + state.total))


def _draw(state, texts, numbers, iterator, pick):
  numbers.append(state.generator.uniform(tf.shape(pick(texts))))


def _draw_in_loop(state, texts, numbers, iterator, pick):
  numbers.append(tf.map_fn(lambda x: x + state.generator.uniform([]), pick(numbers)))


def _draw_in_condition(state, texts, numbers, iterator, pick):
  number = pick(numbers)
  drawn = functools.partial(state.generator.uniform, tf.shape(number))
  numbers.append(tf.cond(tf.reduce_sum(number) > 1, lambda: number + drawn(), lambda: number / 2))


def _draw_in_loop_without_data(state, texts, numbers, iterator, pick):
  drawn = tf.while_loop(lambda x: x < 1.0, lambda x: x + state.generator.uniform([]), [0.0])[0]
  numbers.append(pick(numbers) - drawn)


def _seeded_draw(state, texts, numbers, iterator, pick):
  numbers.append(tf.random.uniform(tf.shape(pick(texts)), seed=7))


def _condition(state, texts, numbers, iterator, pick):
  a, b = pick(numbers), pick(numbers)
  numbers.append(tf.cond(tf.reduce_sum(a) > 1, lambda: tf.sin(b), lambda: b + tf.cast(tf.size(a), tf.float32)))


def _loop(state, texts, numbers, iterator, pick):
  number = pick(numbers)
  numbers.append(tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, tf.tanh(x + 0.5)), (0, number))[1])


def _check(state, texts, numbers, iterator, pick):
  tf.debugging.assert_less(pick(numbers), 1e6)


def _python(state, texts, numbers, iterator, pick):
  number = pick(numbers)
  numbers.append(tf.ensure_shape(tf.numpy_function(lambda x: x * np.float32(0.5), [number], tf.float32), number.shape))


def _read(state, texts, numbers, iterator, pick):
  # Of one length with the others.
  texts.append(tf.fill(tf.shape(pick(texts)), tf.strings.reduce_join(next(iterator))))


_OPS = [_hash, _hash, _upper, _lookup, _changing_lookup, _gather, _multiply, _multiply, _train, _draw, _seeded_draw,
        _draw_in_loop, _draw_in_condition, _draw_in_loop_without_data, _condition, _loop, _check, _python]


def make_function(choices, depth, ops):
  """Makes a function of (state, iterator, texts, numbers) that does and calls what the choices say."""
  parts = []
  for _ in range(choices.randint(3, 7)):
    if depth < DEEPEST and choices.random() < 0.3:
      called = make_function(choices, depth + 1, ops)
      parts.extend([called] * choices.randint(1, 2))
    else:
      parts.append(choices.choice(ops))
  picks = random.Random(choices.random())

  def function(state, iterator, texts, numbers):
    texts, numbers = list(texts), list(numbers)
    mine = random.Random(0)
    mine.setstate(picks.getstate())  # A new trace makes the same choices.
    for part in parts:
      if part in ops:
        part(state, texts, numbers, iterator, mine.choice)
      else:
        text, number = part(state, iterator, [mine.choice(texts)], [mine.choice(numbers), mine.choice(numbers)])
        texts.append(text)
        numbers.append(number)
    return texts[-1], numbers[-1]

  if depth == 0:
    return function
  traced = {}

  def call(state, iterator, texts, numbers):
    if id(state) not in traced:
      traced[id(state)] = tf.function(
          lambda iterator, texts, numbers: function(state, iterator, texts, numbers), reduce_retracing=True)
    return traced[id(state)](iterator, texts, numbers)

  return call


def run(seed, wrap):
  # A step of several reads of which one finds the end may or may not have trained: its data does not end.
  ends = seed % 2 == 0
  body, state = make_function(random.Random(seed), 0, _OPS if ends else [*_OPS, _read, _read]), State()

  @tf.function
  def step(iterator):
    text = next(iterator)
    return body(state, iterator, [text], [tf.cast(tf.strings.length(text), tf.float32)])

  wrapped, values = wrap(step), []
  tf.random.set_seed(seed)
  dataset = tf.data.Dataset.from_tensor_slices(WORDS).batch(3)
  # No step finds the end: without a stage, too, it may or may not draw what it does not need the element for.
  steps = len(dataset) if ends else 7
  for epoch in range(3):
    iterator = iter(dataset if ends else dataset.repeat())
    for _ in range(2 if epoch == 1 else steps):  # The second epoch is left early.
      values.append(tf.nest.map_structure(lambda t: t.numpy().tolist(), wrapped(iterator)))
      values.append(state.values())
  return values, wrapped


def case_random_steps():
  number, staged = int(os.environ.get("AHEAD_SEEDS", "12")), 0
  for seed in range(number):
    expected, _ = run(seed, lambda step: step)
    got, step = run(seed, lambda step: tf.staging.ahead(step, capacity=3))
    assert got == expected, f"seed {seed}"
    staged += step.why_not is None
  assert staged > number // 2, f"only {staged} of {number} were staged"


if __name__ == "__main__":
  cases.main(globals())
