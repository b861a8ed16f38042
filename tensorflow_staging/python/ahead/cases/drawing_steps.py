# SPDX-License-Identifier: Apache-2.0
"""Steps that draw random numbers, with a stage and without: the numbers and the state of the generator are the same."""

from collections.abc import Callable
from typing import Any
from typing import Optional

import tensorflow as tf


def train(
    stage: bool, compute: Callable, generator: Any, num_threads: int = 1,
    before: Callable = lambda generator: None) -> tuple[Any, Callable]:
  """Trains three epochs, of which the second is left early, and draws after each.

  Args:
    stage: Whether with a stage.
    compute: Called with the generator and the numbers of a batch; returns numbers.
    generator: Has a variable `state`, and `uniform`.
    num_threads: How many threads the stage has.
    before: Called with the generator before a batch is read. What it returns is the last argument of `compute`, unless
      it is None.

  Returns:
    What was seen, and the step.
  """
  total = tf.Variable(0.0)

  @tf.function
  def step(iterator):
    drawn = before(generator)
    number = compute(generator, next(iterator), *([] if drawn is None else [drawn]))
    total.assign_add(tf.reduce_sum(number))
    return number

  called = tf.staging.ahead(step, capacity=3, num_threads=num_threads) if stage else step
  dataset = tf.data.Dataset.range(11).map(lambda n: tf.cast(n, tf.float32)).batch(2)
  seen = []
  for epoch in range(3):
    iterator, state = iter(dataset), generator.state.numpy()
    for _ in range(2 if epoch == 1 else 9):
      try:
        seen.append(called(iterator).numpy().tolist())
      except tf.errors.OutOfRangeError:
        seen.append("end")
        # Without a stage, too, this step may or may not draw what it does not need the element for.
        generator.state.assign(state)
        break
      state = generator.state.numpy()
      seen.append(state.tolist())
    generator.uniform([epoch])
  return (seen, total.numpy()), called


def compare(
    compute: Callable, new_generator: Callable, ahead: Optional[str], in_step: Optional[str] = None,
    unstaged: Optional[Callable] = None, **options) -> None:
  """Expects the same with a stage.

  Args:
    compute: As for `train`.
    new_generator: Returns a new generator.
    ahead: How the name of a node ends that runs ahead.
    in_step: How the name of a node ends that does not.
    unstaged: What computes the same without a stage; None stands for `compute`.
    **options: Others of `train`.
  """
  expected, _ = train(False, unstaged or compute, new_generator(), **options)
  for num_threads in (1, 3):
    got, step = train(True, compute, new_generator(), num_threads, **options)
    assert got == expected, (num_threads, got, expected)
    nodes = step.report().steps[0].nodes
    assert any(node.endswith(ahead) for node in nodes), (ahead, nodes)
    assert in_step is None or not any(node.endswith(in_step) for node in nodes), (in_step, nodes)
