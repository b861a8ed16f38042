# SPDX-License-Identifier: Apache-2.0
"""Generators that keep a seed and a counter in a variable, which each draw reads and assigns, as Keras 3's do; run by
ahead/ahead_test.py.

Values and states are those without a stage.
"""

import cases
import drawing_steps
import tensorflow as tf

_DRAW = "StatelessRandomUniformV2"


class _Counter:
  """Draws by stateless ops, with seeds that it counts."""

  def __init__(self, dtype=tf.int64):
    self.state = tf.Variable([7, 0], dtype=dtype)

  def seed(self):
    seed = self.state * 1
    self.state.assign(self.state + tf.constant([0, 1], self.state.dtype))
    return seed

  def uniform(self, shape):
    return tf.random.stateless_uniform(shape, tf.cast(self.seed(), tf.int64))


class _AddingCounter(_Counter):
  """The same, by one op."""

  def seed(self):
    seed = tf.identity(self.state)
    self.state.assign_add(tf.constant([1, 2], self.state.dtype))
    return seed


def _compare(compute, ahead: str = _DRAW, in_step=None, new_counter=_Counter) -> None:
  drawing_steps.compare(compute, new_counter, ahead, in_step)


def case_a_draw():
  _compare(lambda counter, numbers: numbers + counter.uniform(tf.shape(numbers)))


def case_types_of_counters():
  for dtype in (tf.int32, tf.uint32, tf.uint64):
    _compare(lambda counter, numbers: numbers * counter.uniform([]), new_counter=lambda dtype=dtype: _Counter(dtype))


def case_a_counter_that_adds():
  _compare(lambda counter, numbers: numbers * counter.uniform([]), new_counter=_AddingCounter)


def case_several_draws():
  def compute(counter, numbers):
    factor = counter.uniform([])
    return numbers * factor + counter.uniform(tf.shape(numbers)) - counter.uniform([])

  _compare(compute)


def case_draws_in_calls():
  def compute(counter, numbers):
    augment = tf.function(lambda n: n + counter.uniform(tf.shape(n)))
    return augment(augment(numbers)) * counter.uniform([])

  _compare(compute)


def case_a_counter_of_each_layer():
  weight = tf.Variable(2.0)

  class TwoCounters(_Counter):

    def __init__(self):
      super().__init__()
      self.of_dropout = _Counter()

  def compute(counter, numbers):
    augmented = numbers + counter.uniform(tf.shape(numbers))
    hidden = augmented * weight
    # Its draw stays in the step, since nothing ahead uses it. It needs an element.
    with tf.name_scope("dropout"), tf.control_dependencies([hidden]):
      return hidden * counter.of_dropout.uniform([1])

  _compare(compute, in_step=f"dropout/stateless_random_uniform/{_DRAW}", new_counter=TwoCounters)


def case_a_counter_that_the_data_moves_stays_in_the_step():
  def compute(counter, numbers):
    draw = counter.uniform([])
    counter.state.assign_add([0, tf.cast(numbers[0], tf.int64)])
    return tf.sin(numbers) * draw

  _compare(compute, ahead="Sin", in_step=_DRAW)


def case_a_counter_that_a_variable_moves_stays_in_the_step():
  stride = tf.Variable(3, dtype=tf.int64)

  def compute(counter, numbers):
    draw = counter.uniform([])
    counter.state.assign_add([0, 1] * stride)
    return tf.sin(numbers) * draw

  _compare(compute, ahead="Sin", in_step=_DRAW)


def case_a_counter_in_a_conditional_stays_in_the_step():
  def compute(counter, numbers):
    numbers = tf.sin(numbers)
    return tf.cond(tf.reduce_sum(numbers) > 0, lambda: numbers * counter.uniform([]), lambda: numbers)

  _compare(compute, ahead="Sin")


def case_a_variable_that_is_only_read_stays_in_the_step():
  scale = tf.Variable(3, dtype=tf.int64)

  def compute(counter, numbers):
    return tf.sin(numbers) * tf.cast(scale, tf.float32) * counter.uniform([])

  _compare(compute, ahead="Sin", in_step="Cast")


def case_what_the_step_returns_of_a_counter():
  def compute(counter, numbers):
    before = tf.cast(counter.state[1], tf.float32)
    drawn = numbers * counter.uniform([])
    return tf.stack([tf.reduce_sum(drawn), before, tf.cast(counter.state[1], tf.float32)])

  _compare(compute)


def case_a_counter_that_the_program_sets():
  def train(stage):
    counter = _Counter()

    @tf.function
    def step(iterator):
      return next(iterator) + counter.uniform([])

    called = tf.staging.ahead(step, capacity=3) if stage else step
    iterator = iter(tf.data.Dataset.range(20).map(lambda n: tf.cast(n, tf.float32)))
    seen = []
    for i in range(20):
      if i in (5, 12):
        counter.state.assign([i, 0])
      seen.append((called(iterator).numpy(), counter.state.numpy().tolist()))
    return seen

  assert train(True) == train(False)


def case_a_loop_of_steps():
  def train(stage):
    counter = _Counter()

    @tf.function
    def steps(iterator):
      total = tf.zeros([2])
      for _ in tf.range(3):
        total += next(iterator) * counter.uniform([2])
      return total

    called = tf.staging.ahead(steps, capacity=3) if stage else steps
    iterator = iter(tf.data.Dataset.range(24).map(lambda n: tf.cast(n, tf.float32)).batch(2))
    seen = [(called(iterator).numpy().tolist(), counter.state.numpy().tolist()) for _ in range(4)]
    return seen, called.report().steps[0].nodes if stage else []

  expected, _ = train(False)
  got, nodes = train(True)
  assert got == expected, (got, expected)
  assert any(node.endswith(_DRAW) for node in nodes), nodes


def case_a_loop_after_a_step():
  def train(stage):
    counter = _Counter()
    compute = lambda iterator: next(iterator) * counter.uniform([2])

    @tf.function
    def steps(iterator):
      total = compute(iterator)
      for _ in tf.range(2):
        total += compute(iterator)
      return total

    called = tf.staging.ahead(steps, capacity=3) if stage else steps
    iterator = iter(tf.data.Dataset.range(24).map(lambda n: tf.cast(n, tf.float32)).batch(2))
    seen = [(called(iterator).numpy().tolist(), counter.state.numpy().tolist()) for _ in range(4)]
    return seen, called.report().steps[0] if stage else None

  expected, _ = train(False)
  got, report = train(True)
  assert got == expected, (got, expected)
  assert any(node.endswith(_DRAW) for node in report.nodes), report


def case_a_call_that_xla_compiles():
  def compute(counter, numbers):
    augmented = numbers + counter.uniform(tf.shape(numbers))
    compiled = tf.function(lambda n: tf.sin(n) * counter.uniform([]), jit_compile=True)
    return compiled(augmented)

  # All draws of a counter run ahead, or none does.
  _compare(compute, ahead="IteratorGetNext", in_step=_DRAW)


def case_a_counter_in_a_checkpoint():
  counter = _Counter()

  @tf.function
  def step(iterator):
    return next(iterator) + counter.uniform([])

  called = tf.staging.ahead(step, capacity=4)
  dataset = tf.data.Dataset.range(20).map(lambda n: tf.cast(n, tf.float32))
  iterator = iter(dataset)
  checkpoint = tf.train.Checkpoint(state=counter.state, iterator=iterator)
  for _ in range(5):
    called(iterator)
  path = checkpoint.save("checkpoint")
  expected = [called(iterator).numpy() for _ in range(6)]
  checkpoint.restore(path)
  assert [called(iterator).numpy() for _ in range(6)] == expected


if __name__ == "__main__":
  cases.main(globals())
