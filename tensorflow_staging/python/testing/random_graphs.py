# SPDX-License-Identifier: Apache-2.0
"""Random graphs and steps to run in them; a seed determines both.

A graph has iterators, ops that use their records, variables that every step reads and updates, and placeholders; some
ops have control edges, a device or a name scope. A step fetches and feeds random tensors, but it runs every source and
every stateful op, unless the graph has only one source and no stateful op. An op in a region, which runs once for each
record, then runs as often as it would without a stage.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tensorflow_staging.python.testing import needed_ops
from tensorflow_staging.python.testing import random_graph_ops as random_ops
from tensorflow_staging.python.testing import random_graph_sources as random_sources

# The rows of a variable from which a step gathers.
_ROWS = 7


@dataclasses.dataclass
class Step:
  """The fetches and feeds of one step."""

  # Names of tensors and ops.
  fetches: list[str]
  feeds: dict[str, np.ndarray]
  # Names of the initializers that run before the step, in a run of their own, to restart the data.
  restart: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class RandomGraph:
  """A graph, the steps to run in it, and the settings of its session."""

  seed: int
  graph: tf.Graph
  initializers: list[tf.Operation]
  steps: list[Step]
  # The capacity of the stage's buffer.
  capacity: int
  # Whether Grappler is on.
  grappler: bool
  # Whether SmartStage is on, beside the graph's manual stages.
  smart_stage: bool
  # Whether a step's `restart` initializes every source. If not, no step can run after the end of the data: a step that
  # fails at the end of one source may or may not have advanced the others.
  begins_all: bool
  counters: random_ops.Counters

  def text(self) -> str:
    """Returns the graph and the steps in readable form."""
    lines = []
    for op in self.graph.get_operations():
      inputs = [tensor.name for tensor in op.inputs] + [f"^{control.name}" for control in op.control_inputs]
      target = " target" if "_staging_target" in op.node_def.attr else ""
      lines.append(f"{op.name} = {op.type}({', '.join(inputs)}){target}")
    for number, step in enumerate(self.steps):
      lines.append(f"step {number}: restarts {step.restart}, fetches {step.fetches}, feeds {step.feeds}")
    return "\n".join(lines)


def make(seed: int) -> RandomGraph:
  """Builds the graph of a seed, which is always the same."""
  return _Builder(seed).build()


class _Builder:
  """Builds one random graph, from its sources to its steps."""

  def __init__(self, seed: int):
    self._seed = seed
    self._rng = random.Random(seed)
    self._grappler = self._rng.random() < 0.5
    self._context = random_ops.OpContext(self._rng, random_ops.Counters())
    self._batch = self._rng.randrange(1, 5)
    self._sources = self._rng.choices([1, 2, 3], [65, 25, 10])[0]
    self._mixed = self._sources > 1 and self._rng.random() < 0.6
    self._ragged_end = self._sources == 1 and self._rng.random() < 0.25
    self._steps = self._rng.randrange(3, 5)
    self._families = self._choose_families()
    # Values by kind, oldest first.
    self._values: dict[str, list[Any]] = {}
    self._initializers: list[tf.Operation] = []
    self._placeholders: list[tf.Tensor] = []
    self._optional_placeholders: list[tf.Tensor] = []
    self._variables: list[tf.Variable] = []
    self._reads: list[tf.Tensor] = []

  def build(self) -> RandomGraph:
    rng = self._rng
    with tf.Graph().as_default() as graph:
      for _ in range(self._sources):
        self._add_source()
      if self._mixed:
        self._mix_sources()
      if rng.random() < 0.25:
        self._add_ops(rng.randrange(1, 7))
        self._add_manual_stage()
      if rng.random() < 0.3:
        self._add_step_values()
      self._add_ops(rng.randrange(3, 15))
      self._add_step_values()
      self._add_ops(rng.randrange(2, 10))
      self._mark_targets()
      checksum, train = self._add_targets(graph)
      initializers = [*self._initializers, tf.global_variables_initializer(), tf.tables_initializer()]
    return RandomGraph(
        self._seed, graph, initializers, self._random_steps(graph, checksum, train),
        rng.randrange(1, 4), self._grappler, not needed_ops.manual_regions(graph) or rng.random() < 0.5,
        len(self._initializers) == self._sources, self._context.counters)

  def _choose_families(self) -> list[str]:
    chances = {
        "sparse": 0.5, "random": 0.4, "effects": 0.35, "failing": 0.12, "control flow": 0.3,
        "inexact": 0.0 if self._grappler else 0.4,
    }
    chosen = [name for name, chance in chances.items() if self._rng.random() < chance]
    return ["numbers", "text", *chosen]

  def _add(self, kind: str, value: Any) -> None:
    self._values.setdefault(kind, []).append(value)

  def _pick(self, kind: str) -> Any:
    """Returns a value of this kind, more often one of the latest."""
    values = self._values[kind]
    return self._rng.choice(values[-3:] if self._rng.random() < 0.6 else values)

  def _all_values(self) -> list[Any]:
    return [value for kind in sorted(self._values) for value in self._values[kind]]

  def _add_source(self) -> None:
    finite = self._rng.random() < 0.4
    records = self._rng.randrange(1, self._steps + 1) if finite else None
    # Sometimes this get_next() waits for the value of another.
    after = self._all_values()[-1:] if self._rng.random() < 0.1 else []
    # Sources that can restart never share a stage, so mixed sources are mostly one-shot iterators.
    iterator_kinds = random_sources.ITERATOR_KINDS
    if self._mixed and self._rng.random() < 0.8:
      iterator_kinds = iterator_kinds[:1]
    source = random_sources.add_source(
        self._rng, iterator_kinds, self._batch, records, self._ragged_end, [_dense(value) for value in after])
    for kind, value in source.values:
      self._add(kind, value)
    if source.initializer is not None:
      self._initializers.append(source.initializer)
    if "int" not in self._values:
      value = self._all_values()[0]
      rows = tf.shape(_dense(value), out_type=tf.int64)[0]
      if isinstance(value, tf.SparseTensor):
        rows = value.dense_shape[0]
      self._add("int", tf.range(rows) + random_ops.scalar(value))

  def _mix_sources(self) -> None:
    """Replaces all values by values that depend on every source, so that the sources can share a stage."""
    total = tf.add_n([random_ops.scalar(value) for value in self._all_values()])
    number = tf.math.floormod(total * np.arange(1, self._batch + 1), random_ops.LIMIT)
    self._values = {"int": [number], "text": [tf.strings.join(["word", tf.as_string(number)])]}

  def _add_manual_stage(self) -> None:
    """Stages some of the values, which may be used beside their stage as well."""
    kinds = self._rng.choices(sorted(self._values), k=self._rng.randrange(1, 4))
    staged = tf.staged([self._pick(kind) for kind in kinds], capacity=self._rng.randrange(1, 4))
    # With each of the values, a step without the stage computes all that a record has, and makes the same draws.
    flat = tf.tuple(tf.nest.flatten(staged, expand_composites=True))
    for kind, value in zip(kinds, tf.nest.pack_sequence_as(staged, flat, expand_composites=True)):
      self._add(kind, value)

  def _add_ops(self, count: int) -> None:
    weights = [random_ops.FAMILIES[name][0] for name in self._families]
    for _ in range(count):
      family = self._rng.choices(self._families, weights)[0]
      possible = [
          op for op in random_ops.FAMILIES[family][1] if all(kind in self._values for kind in op.inputs)
      ]
      if not possible:
        continue
      op = self._rng.choices(possible, [op.weight for op in possible])[0]
      with self._surroundings():
        self._add(op.output, op.add(self._context, *(self._pick(kind) for kind in op.inputs)))

  @contextlib.contextmanager
  def _surroundings(self) -> Iterator[None]:
    """Sometimes gives the ops that are added a control edge, a device or a name scope."""
    chance = self._rng.random()
    if chance < 0.06:
      before = self._rng.choice(self._all_values())
      with tf.control_dependencies([_dense(before)]):
        yield
    elif chance < 0.09:
      with tf.device("/cpu:0"):
        yield
    elif chance < 0.12:
      with tf.name_scope("scope"):
        yield
    else:
      yield

  def _add_step_values(self) -> None:
    """Adds values that only a step has: variables and perhaps a placeholder."""
    for _ in range(self._rng.randrange(1, 3)):
      self._add_variable()
    if self._rng.random() < 0.5:
      self._add_placeholder()

  def _add_variable(self) -> None:
    resource = self._rng.random() < 0.6
    name = f"variable{len(self._variables)}"
    like = self._pick("int")
    if self._rng.random() < 0.5:
      variable = tf.get_variable(name, [], tf.int64, tf.ones_initializer(), use_resource=resource)
      # The product has its own memory; the memory of a reference could change while it is fetched.
      read = variable * 3
      self._add("int", tf.fill(tf.shape(like, out_type=tf.int64), read))
    else:
      variable = tf.get_variable(
          name, initializer=np.arange(2 * _ROWS, dtype=np.float32).reshape(_ROWS, 2), use_resource=resource)
      ids = tf.math.floormod(like, _ROWS)
      read = tf.nn.embedding_lookup(variable, ids) if self._rng.random() < 0.5 else tf.gather(variable, ids)
      self._add("matrix", read)
    self._variables.append(variable)
    self._reads.append(read)

  def _add_placeholder(self) -> None:
    like = self._pick("int")
    default = self._rng.random() < 0.3
    if default:
      fed = tf.placeholder_with_default(tf.constant(3, tf.int64), [])
      self._optional_placeholders.append(fed)
    else:
      fed = tf.placeholder(tf.int64, [])
      self._placeholders.append(fed)
    self._add("int", like + fed)

  def _mark_targets(self) -> None:
    if self._rng.random() < 0.3:
      marked = self._rng.sample(self._all_values(), self._rng.randrange(1, 3))
      tf.train.mark_target_node(marked)

  def _add_targets(self, graph: tf.Graph) -> tuple[tf.Tensor, tf.Operation]:
    """Adds the targets of a step: a checksum that depends on every source and stateful op, and the updates."""
    values = self._all_values()
    parts = self._rng.sample(values, min(len(values), self._rng.randrange(1, 4))) + self._reads
    controls = []
    must_run = needed_ops.sources(graph) | needed_ops.stateful_ops(graph)
    missing = must_run - needed_ops.of([_dense(part) for part in parts])
    for value in reversed(values):
      needed = needed_ops.of([_dense(value)])
      if needed & missing:
        missing -= needed
        if self._rng.random() < 0.7:
          parts.append(value)
        else:
          controls.append(_dense(value))
    assert not missing, missing
    with tf.control_dependencies(controls):
      checksum = tf.add_n([random_ops.scalar(part) for part in parts], name="checksum")
    # Every update waits for the step's reads, and for its record.
    delta = tf.math.floormod(checksum, 5)
    with tf.control_dependencies([checksum]):
      updates = [
          tf.assign_add(variable, tf.fill(variable.shape, tf.cast(delta, variable.dtype.base_dtype))).op
          for variable in self._variables
      ]
      if self._rng.random() < 0.1:
        updates.append(tf.summary.scalar("checksum", checksum).op)
    return checksum, tf.group(*updates, name="train")

  def _random_steps(self, graph: tf.Graph, checksum: tf.Tensor, train: tf.Operation) -> list[Step]:
    needed = needed_ops.sources(graph) | needed_ops.stateful_ops(graph)
    has_state = bool(needed_ops.stateful(graph.get_operations()))
    # A restart discards records, but their draws and counts are not undone, so graphs with stateful ops do not restart.
    restarts = not has_state and self._rng.random() < 0.3
    if self._sources == 1 and not has_state:
      # Without stateful ops, a step need not run the only source.
      needed = set()
    always = [checksum.name, train.name]
    sets = [self._random_step(graph, needed, always) for _ in range(self._rng.choice([1, 1, 2]))]
    steps = [self._with_new_values(sets[self._rng.randrange(len(sets))]) for _ in range(self._steps)]
    if restarts and self._initializers:
      for step in self._rng.sample(steps[1:], self._rng.randrange(1, 3)):
        step.restart = [initializer.name for initializer in self._initializers]
    return steps

  def _random_step(self, graph: tf.Graph, needed: set[tf.Operation], always: list[str]) -> Step:
    rng = self._rng
    values = [_dense(value) for value in self._all_values()]
    leaves = [value for value in values if not value.consumers()]
    fetches = {value.name for value in rng.sample(values, min(len(values), rng.randrange(3)))}
    fetches |= {value.name for value in rng.sample(leaves, min(len(leaves), rng.randrange(3)))}
    if rng.random() < 0.1:
      fetches.add(rng.choice(values).op.name)
    if needed or not fetches or rng.random() < 0.7:
      fetches |= set(always)
    feeds = {placeholder.name: np.zeros(0) for placeholder in self._placeholders}
    feeds |= {fed.name: np.zeros(0) for fed in self._optional_placeholders if rng.random() < 0.5}
    kinds = self._kinds_to_feed()
    if kinds and rng.random() < 0.3:
      fed, value = self._random_feed(rng.choice(kinds))
      possible = fed not in fetches and fed not in feeds and fed.rpartition(":")[0] not in fetches
      elements = [graph.as_graph_element(name) for name in fetches]
      # The fed value may pass a check that the record's own value fails, ahead of the step.
      checks = [op for op in graph.get_operations() if op.type == "Assert" and "failing" in self._families]
      possible = possible and graph.as_graph_element(fed).op not in needed_ops.of(checks)
      if possible and needed <= needed_ops.of(elements, {fed}):
        feeds[fed] = value
    return Step(sorted(fetches), feeds)

  def _kinds_to_feed(self) -> list[str]:
    """Returns the kinds of the present values for which a feed of a valid shape is known."""
    fixed = ["bool", "float", "int", "matrix", "text"]
    return [kind for kind in ["ints"] + fixed * (not self._ragged_end) if kind in self._values]

  def _random_feed(self, kind: str) -> tuple[str, np.ndarray]:
    """Returns the name of a tensor of this kind, and a value to feed."""
    size = self._batch
    numbers = np.array([self._rng.randrange(97) for _ in range(size * 2)])
    values = {
        "ints": numbers.astype(np.int64),
        "int": numbers[:size].astype(np.int64),
        "float": numbers[:size].astype(np.float32),
        "text": np.array([f"fed{number} x" for number in numbers[:size]], dtype=object),
        "bool": numbers[:size] > 50,
        "matrix": numbers.reshape(size, 2).astype(np.float32),
    }
    return self._pick(kind).name, values[kind]

  def _with_new_values(self, step: Step) -> Step:
    """Returns a copy of the step with new random values for the placeholders."""
    feeds = {
        name: value if value.size else np.int64(self._rng.randrange(97)) for name, value in step.feeds.items()
    }
    return Step(list(step.fetches), feeds)


def _dense(value: tf.Tensor | tf.SparseTensor) -> tf.Tensor:
  """Returns the value itself, or the values of a sparse tensor, where only one tensor is possible."""
  return value.values if isinstance(value, tf.SparseTensor) else value


def without_names(step: Step, refused: Sequence[str]) -> Step:
  """Returns the step without the fetches and feeds in `refused`."""
  return Step(
      [name for name in step.fetches if name not in refused],
      {name: value for name, value in step.feeds.items() if name not in refused}, step.restart)
