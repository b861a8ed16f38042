# SPDX-License-Identifier: Apache-2.0
"""Plays histories to a `tf.function` whose data are read ahead by `tf.staging.ahead`."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tensorflow_staging.python.testing.histories import graph_ops
from tensorflow_staging.python.testing.histories import iterator_model
from tensorflow_staging.python.testing.histories import outcomes
from tensorflow_staging.python.testing.histories import product_player
from tensorflow_staging.python.testing.histories import programs


class FunctionPlayer(product_player.ProductPlayer):
  """A program in functions, whose stages begin with a step."""

  def __init__(self, program: programs.Program, folder: pathlib.Path):
    super().__init__(program, folder)
    # Of an unknown length, as the data that take its place: data of one element have no stage.
    self._template = tf.data.Dataset.range(1).filter(lambda _: False)
    self._makers = {name: _maker(i, prefetches=program.prefetches) for i, name in enumerate(program.names)}
    self._function = self._make_step()
    self._steps: dict[programs.Layout, Any] = {}
    self._iterators: dict[str, Any] = {}
    self._whys: set[str] = set()

  def __enter__(self) -> FunctionPlayer:
    return self

  def __exit__(self, *_) -> None:
    for step in self._steps.values():
      self._stop(step)

  def notes(self) -> list[str]:
    """Returns whether the program ran ahead."""
    return ["ran ahead" if "" in self._whys else "did not"]

  def new_session(self, layout: programs.Layout) -> None:
    self.is_running = False
    self._iterators = {name: iter(self._template) for name in self._program.names}
    self._data = {}
    self._step = self._step_of(layout)

  def step(self) -> outcomes.Outcome:
    outcome = graph_ops.outcome_of(
        lambda: tuple(int(number) for number in self._step(*self._iterators.values()).numpy()))
    if self._step is not self._function:
      self._whys.add(self._step.why_not or "")
    return outcome

  def initialise(self, names: Iterable[str], data: iterator_model.Data) -> None:
    self._initialise({name: data for name in names}, in_place=data.base % 2 == 0)

  def initialise_in_vain(self, name: str, way: int) -> None:
    del way
    try:
      self._makers[name](self._iterators[name]._iterator_resource, 0, "no number", [], [])
    except tf.errors.InvalidArgumentError:
      return
    raise AssertionError("An initialiser that had to fail has succeeded.")

  def restore(self, names: Iterable[str], saved: product_player.Saved, way: int) -> None:
    self._initialise({name: saved.data[name] for name in names}, in_place=way % 2 == 0)
    tf.train.Checkpoint(**{name: self._iterators[name] for name in names}).read(saved.path).expect_partial()

  def read_beside(self, name: str, way: int) -> outcomes.Outcome:
    iterator = self._iterators[name]
    if way % 3 == 0:
      return graph_ops.outcome_of(lambda: int(iterator.get_next()))
    if way % 3 == 1:
      return graph_ops.outcome_of(lambda: int(_read(iterator)))
    return graph_ops.outcome_of(lambda: _value(iterator.get_next_as_optional()))

  def start(self, layout: programs.Layout) -> None:
    self.is_running = True
    # Another step may take over the iterators.
    self._step = self._step_of(layout)

  def stop(self) -> None:
    self.is_running = False
    self._stop(self._step)

  def discard(self) -> None:
    # What is read ahead goes back, and the next step reads it again.
    self._stop(self._step)

  def _may_step_during_a_save(self) -> bool:
    # Eager ops save one iterator after the other, so a step between them is in one and not in the next. Nor is a step
    # without a stage in one piece.
    return len(self._program.names) == 1 and getattr(self._step, "why_not", "no stage") is None

  def _write(self, path: str) -> None:
    tf.train.Checkpoint(**self._iterators).write(path)

  def _do_something_else(self) -> None:
    _nothing()

  def _make_step(self) -> Any:
    self._total = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(*iterators):
      by_name = dict(zip(self._program.names, iterators))
      values = graph_ops.Ops(self._program, by_name, None).add(self._program.ops, graph_ops.nothing_read())
      self._total.assign_add(values.total)
      return tf.stack(values.record)

    return step

  def _step_of(self, layout: programs.Layout) -> Any:
    if not layout.has_stage:
      return self._function
    if layout not in self._steps:
      # However many threads there are, records keep their order.
      self._steps[layout] = tf.staging.ahead(
          self._function, capacity=layout.capacities[0], num_threads=3 if layout.smart_stage else 1)
    return self._steps[layout]

  def _stop(self, step: Any) -> None:
    if step is not self._function:
      step.stop()

  def _initialise(self, data: Mapping[str, iterator_model.Data], *, in_place: bool = True) -> None:
    for name, its in data.items():
      if not in_place:
        self._iterators[name] = iter(self._template)
      self._makers[name](
          self._iterators[name]._iterator_resource, its.base, str(its.length), sorted(its.invalid),
          sorted(its.missing))
    self._data |= data


def _maker(source: int, *, prefetches: bool) -> Any:
  """Returns a function that gives an iterator data; it is traced once, which takes most of the time."""
  vector = tf.TensorSpec([None], tf.int64)

  @tf.function(input_signature=[
      tf.TensorSpec([], tf.resource), tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.string), vector, vector])
  def make(iterator, base, length, invalid, missing):
    data = graph_ops.dataset(
        source, base, tf.strings.to_number(length, tf.int64), invalid, missing, prefetches=prefetches)
    tf.raw_ops.MakeIterator(dataset=data._variant_tensor, iterator=iterator)

  return make


@tf.function
def _nothing():
  return tf.constant(0)


@tf.function
def _read(iterator):
  return next(iterator)


def _value(optional: tf.experimental.Optional) -> outcomes.Outcome:
  return int(optional.get_value()) if optional.has_value() else outcomes.END
