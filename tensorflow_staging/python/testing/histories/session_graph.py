# SPDX-License-Identifier: Apache-2.0
"""The graph of a random program, as a session runs it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import control_flow
from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing.histories import graph_ops
from tensorflow_staging.python.testing.histories import iterator_model
from tensorflow_staging.python.testing.histories import outcomes
from tensorflow_staging.python.testing.histories import programs

# Much longer than any run takes; one that takes longer fails.
_RUN_MILLIS = 20000

# Data that the first initialiser gives.
_FIRST = iterator_model.Data(0, 0)


class _Source:
  """An iterator, and what initialises it."""

  def __init__(self, number: int, program: programs.Program):
    self._is_fed = program.data is None
    self._base = tf.placeholder(tf.int64, [])
    self._length = tf.placeholder(tf.string, [])
    self._invalid, self._missing = (tf.placeholder(tf.int64, [None]) for _ in range(2))
    self._flag = tf.placeholder(tf.bool, [])

    def dataset():
      data = self._placeholders() if self._is_fed else [
          tf.constant(value, dtype) for value, dtype in zip(_values(program.data), _TYPES)]
      base, length, invalid, missing = data
      return graph_ops.dataset(
          number, base, tf.strings.to_number(length, tf.int64), invalid, missing, prefetches=program.prefetches)

    if program.two_initialisers:
      self.iterator = tf.data.Iterator.from_structure(tf.int64, [])
      self._initialisers = [
          self.iterator.make_initializer(dataset()),
          tf.cond(self._flag, lambda: _after(self.iterator.make_initializer(dataset())), lambda: tf.constant(0))]
    else:
      self.iterator = tf.data.make_initializable_iterator(dataset())
      self._initialisers = [self.iterator.initializer]
    with tf.control_dependencies([self._initialisers[0]]):
      self.in_a_failing_run = tf.raw_ops.Assert(condition=False, data=["after the initialiser"])
    self.handle = self.iterator.string_handle()

  def add_initialiser_of_another_type(self) -> None:
    """Adds what always fails. Savers that know it do not initialise the iterator."""
    self._of_another_type = tf.raw_ops.MakeIterator(
        dataset=tf.data.Dataset.from_tensors("text")._variant_tensor, iterator=self.iterator._iterator_resource)

  def initialiser(self, data: iterator_model.Data) -> tf.Operation | tf.Tensor:
    """Returns the initialiser for some data, always the same."""
    return self._initialisers[data.base % len(self._initialisers)]

  def feeds(self, data: iterator_model.Data) -> dict[tf.Tensor, Any]:
    return {**(dict(zip(self._placeholders(), _values(data))) if self._is_fed else {}), self._flag: True}

  def in_vain(self, way: int) -> tuple[tf.Operation | tf.Tensor, dict[tf.Tensor, Any], bool]:
    """Returns what seems to initialise the iterator, its feeds, and whether it fails."""
    if way % 3 == 0 and self._is_fed:
      return self._initialisers[0], dict(zip(self._placeholders(), (0, "no number", [], []))), True
    if way % 3 == 1 and len(self._initialisers) > 1:
      data = iterator_model.Data(1, 1)
      return self._initialisers[1], {**self.feeds(data), self._flag: False}, False
    return self._of_another_type, {}, True

  def _placeholders(self) -> list[tf.Tensor]:
    return [self._base, self._length, self._invalid, self._missing]


_TYPES = (tf.int64, tf.string, tf.int64, tf.int64)


def _values(data: iterator_model.Data) -> tuple[Any, ...]:
  return data.base, str(data.length), sorted(data.invalid), sorted(data.missing)


def _after(op: tf.Operation) -> tf.Tensor:
  with tf.control_dependencies([op]):
    return tf.constant(1)


class SessionGraph:
  """A graph, and what may be run in it.

  Attributes:
    graph: The graph.
    step: What a step fetches: the values of its record, and what trains.
    step_and_element: The same, and beside it what the step has read first, before the stage. None for a join, whose
      records do not say which source that was, and for a chain, where a step may not fetch that.
    nothing: An op that reads no source.
    beside: Reads the iterator whose string handle is fed to `handle`. None with SmartStage: whatever else may read an
      iterator keeps it in the step.
  """

  def __init__(self, program: programs.Program, layout: programs.Layout):
    """Builds the graph.

    Args:
      program: The program.
      layout: Its stages.
    """
    self._program = program
    self._layout = layout
    self.graph = tf.Graph()
    with self.graph.as_default(), control_flow.version(program.control_flow):
      self._build()

  def config(self) -> tf.ConfigProto:
    """Returns the configuration for a session."""
    config = tf.ConfigProto()
    if self._layout.smart_stage:
      config = smart_stage_sessions.smart_stage_config(**self._options(self._layout.capacities[-1]))
    config.operation_timeout_in_ms = _RUN_MILLIS
    config.intra_op_parallelism_threads = 2
    config.inter_op_parallelism_threads = 2
    return config

  def initialisers(self, data: dict[str, iterator_model.Data]) -> list[Any]:
    """Returns what initialises sources.

    Args:
      data: The data of each source.
    """
    return [self._sources[name].initialiser(its) for name, its in data.items()]

  def feeds(self, data: dict[str, iterator_model.Data]) -> dict[tf.Tensor, Any]:
    """Returns what initialisers are fed.

    Args:
      data: The data of each source.
    """
    return {tensor: value for name, its in data.items() for tensor, value in self._sources[name].feeds(its).items()}

  def initialiser_in_a_failing_run(self, data: dict[str, iterator_model.Data]) -> tf.Operation | None:
    """Returns what initialises a source and then fails; None if there is no such op for these data.

    Args:
      data: The data of each source.
    """
    (name, its), *others = data.items()
    source = self._sources[name]
    return None if others or source.initialiser(its) is not source.initialiser(_FIRST) else source.in_a_failing_run

  def initialiser_in_vain(self, name: str, way: int) -> tuple[Any, dict[tf.Tensor, Any], bool]:
    """Returns what seems to initialise a source, its feeds, and whether it fails.

    Args:
      name: The source.
      way: A number that chooses what it is.
    """
    return self._sources[name].in_vain(way)

  def handle_of(self, name: str) -> tf.Tensor:
    """Returns the string handle of a source."""
    return self._sources[name].handle

  def savers(self, names: Iterable[str]) -> list[tf.train.Saver]:
    """Returns what saves and restores sources."""
    return [self._saver] if set(names) == set(self._savers) else [self._savers[name] for name in names]

  def _build(self) -> None:
    self._sources = {
        name: _Source(i, self._program) for i, name in enumerate(self._program.names)}
    iterators = {name: source.iterator for name, source in self._sources.items()}
    self._ops = graph_ops.Ops(self._program, iterators, self.handle_of)
    values = graph_ops.nothing_read()
    self._first_read = None
    for i, stage in enumerate(self._program.stages(self._layout)):
      values = self._add_stage(stage, values, is_manual=i < self._layout.manual)
    zero = tf.get_variable("zero", initializer=tf.zeros([], tf.int64), use_resource=True)
    total = tf.get_variable("total", initializer=tf.zeros([], tf.int64), use_resource=True)
    self.step = {"record": tf.stack(values.record) + zero, "train": tf.assign_add(total, values.total)}
    self.step_and_element = None
    if len(self._program.stages(self._layout)) == 1 and not self._program.joined:
      self.step_and_element = {**self.step, "element": self._first_read}
    self.initialise_variables = tf.global_variables_initializer()
    self.nothing = tf.no_op()
    self.handle = tf.placeholder(tf.string, [])
    self.beside = None
    if not self._layout.smart_stage:
      self.beside = tf.data.Iterator.from_string_handle(self.handle, tf.int64, []).get_next()
    self._add_savers(iterators)
    for source in self._sources.values():
      source.add_initialiser_of_another_type()

  def _add_stage(self, stage: programs.Stage, values: graph_ops.Values, *, is_manual: bool) -> graph_ops.Values:
    branches = [self._ops.add(branch, values) for branch in stage.branches]
    if self._first_read is None:
      self._first_read = branches[0].record[0]
    if not is_manual:
      values, = branches
      return values
    options = self._options(stage.capacity)
    # SmartStage and a stage compute nothing that is only passed on.
    branches = [values._replace(last=values.last + 0) for values in branches]
    if len(branches) == 1:
      return tf.staged(branches[0], **options)
    del options["num_threads"], options["deterministic"]
    return tf.prefetch_join(branches, **options)

  def _options(self, capacity: int) -> dict[str, Any]:
    ignored = [tf.errors.NotFoundError] if self._program.ignores else None
    return {
        "capacity": capacity, "num_threads": self._program.num_threads,
        "deterministic": self._program.deterministic, "ignored_exception_types": ignored}

  def _add_savers(self, iterators: dict[str, Any]) -> None:
    if self._program.holds_positions:
      tf.staging.save_iterators(*iterators.values())
      saveables = tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS)
    else:
      saveables = [tf.data.experimental.make_saveable_from_iterator(iterator) for iterator in iterators.values()]
    self._savers = {name: tf.train.Saver([saveable]) for name, saveable in zip(iterators, saveables)}
    self._saver = tf.train.Saver(saveables, max_to_keep=None)


def record_of(fetched: dict[str, Any]) -> outcomes.Record:
  """Returns the record of what a step has fetched.

  Args:
    fetched: The values of `SessionGraph.step`.
  """
  record = tuple(int(number) for number in fetched["record"])
  assert fetched.get("element", record[0]) == record[0], f"The step has used several elements: {fetched}"
  return record
