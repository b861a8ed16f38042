# SPDX-License-Identifier: Apache-2.0
"""Random graphs with `tf.staged` at random places, and random feeds and fetches of them.

A seed has two graphs: one with stages, and one in which each stage only passes on its features. Both have the same
tensors, under the same keys. All of a graph's elements come from one iterator, and nothing is drawn, so a run of both
graphs needs the same element.
"""

from __future__ import annotations

import dataclasses
import random
from typing import Any
from typing import Union

import numpy as np
import tensorflow as tf

from tensorflow_staging.python.testing import control_flow

# What a run feeds or fetches: the key of a tensor.
Key = str
Value = Union[int, bool, str]


@dataclasses.dataclass
class FeedGraph:
  """One of the two graphs of a seed."""

  graph: tf.Graph
  tensors: dict[Key, tf.Tensor]
  # The keys of the tensors that stages have returned, and of those that have a value in every run.
  staged: list[Key]
  fetchable: list[Key]
  initializers: list[tf.Operation]
  # The string handles of other data, to feed.
  other_handle: tf.Tensor


@dataclasses.dataclass
class Run:
  """What one run feeds and fetches."""

  feeds: dict[Key, Value]
  fetches: list[Key]


def make(seed: int, with_stages: bool) -> FeedGraph:
  """Builds a graph of this seed, which is always the same."""
  return _Builder(seed, with_stages).build()


def random_runs(seed: int, graph: FeedGraph, count: int) -> list[Run]:
  """Returns runs of the graph of this seed. A string that is fed stands for the handle of the graph's other data."""
  rng = random.Random(seed * 7919 + 1)
  return [_random_run(rng, graph) for _ in range(count)]


class _Builder:
  """Builds one graph: the same with and without stages."""

  def __init__(self, seed: int, with_stages: bool):
    self._rng = random.Random(seed)
    self._with_stages = with_stages
    self._tensors: dict[Key, tf.Tensor] = {}
    self._staged: list[Key] = []
    # The keys of numbers, and of those that only a step can compute.
    self._numbers: list[Key] = []
    self._of_step: set[Key] = set()
    # Those that depend on the element, which alone are staged.
    self._of_element: set[Key] = set()
    # Those that depend on what only stages feed.
    self._of_own: set[Key] = set()
    # What all stages feed by themselves.
    self._feed_dict: dict[tf.Tensor, tf.Tensor] = {}

  def build(self) -> FeedGraph:
    with tf.Graph().as_default() as graph, control_flow.version(self._rng.choice([1, 2])):
      element, initializers, other_handle = self._add_iterator()
      for number, part in enumerate(element):
        self._add(f"element{number}", part, of_element=True)
      self._add_inputs()
      for _ in range(self._rng.choice([1, 1, 2, 2, 3])):
        for _ in range(self._rng.randrange(4)):
          self._add_op()
        self._add_stage()
      self._add_step_inputs()
      for _ in range(self._rng.randrange(1, 5)):
        self._add_op()
      initializers.append(tf.global_variables_initializer())
    fetchable = [key for key in self._tensors if key not in self._of_own and key != "placeholder"]
    return FeedGraph(graph, self._tensors, self._staged, fetchable, initializers, other_handle)

  def _add(self, key: Key, tensor: tf.Tensor, of_element: bool = False, of_step: bool = False) -> None:
    self._tensors[key] = tensor
    if tensor.dtype != tf.int64:
      return
    self._numbers.append(key)
    if of_element:
      self._of_element.add(key)
    if of_step:
      self._of_step.add(key)

  def _add_iterator(self) -> tuple[tuple[tf.Tensor, ...], list[tf.Operation], tf.Tensor]:
    iterators = [
        tf.data.make_initializable_iterator(
            tf.data.Dataset.range(start, start + 1000).map(lambda i: (i, i * 10, i % 3)))
        for start in (0, 5000)
    ]
    chosen = iterators[0]
    if self._rng.random() < 0.4:
      handle = self._own_input("handle", iterators[0].string_handle())
      chosen = tf.data.Iterator.from_string_handle(
          handle, tf.data.get_output_types(chosen), tf.data.get_output_shapes(chosen))
    element = chosen.get_next()
    if self._rng.random() < 0.2:
      element = tf.function(lambda *parts: tuple(part + 0 for part in parts))(*element)
    return element, [iterator.initializer for iterator in iterators], iterators[1].string_handle()

  def _own_input(self, key: Key, value: tf.Tensor) -> tf.Tensor:
    """Adds a placeholder that each stage feeds by itself; without stages, it has the value as its default."""
    has_default = self._rng.random() < 0.3 or not self._with_stages
    tensor = tf.placeholder_with_default(value, []) if has_default else tf.placeholder(value.dtype, [])
    if self._with_stages:
      self._feed_dict[tensor] = value
    self._tensors[key] = tensor
    self._of_own.add(key)
    return tensor

  def _add_inputs(self) -> None:
    """Adds what both sides may use: constants, placeholders with and without a value of the stages', a variable."""
    self._add("constant", tf.constant(self._rng.randrange(1, 9), tf.int64))
    if self._rng.random() < 0.4:
      self._add("default", tf.placeholder_with_default(tf.constant(5, tf.int64), []))
    if self._rng.random() < 0.4:
      self._own_input("own", tf.constant(self._rng.randrange(1, 9), tf.int64))
      self._add("with_own", self._tensors["element1"] + self._tensors["own"], of_element=True)
      self._of_own.add("with_own")
    if self._rng.random() < 0.4:
      variable = tf.get_variable("variable", initializer=np.int64(self._rng.randrange(9)))
      self._add("variable", variable.read_value())

  def _add_step_inputs(self) -> None:
    if self._rng.random() < 0.5:
      self._add("placeholder", tf.placeholder(tf.int64, []), of_step=True)

  def _pick(self) -> Key:
    """Returns the key of a number, more often one of the latest."""
    return self._rng.choice(self._numbers[-4:] if self._rng.random() < 0.6 else self._numbers)

  def _add_op(self) -> None:
    key = f"op{len(self._tensors)}"
    used = [self._pick() for _ in range(3)]
    x, y, z = (self._tensors[name] for name in used)
    number = self._rng.randrange(1, 9)
    kind = self._rng.choice(["sum", "product", "one", "pack", "cond", "constants", "nested", "while", "where", "check",
                             "function", "group"])
    used_parts = {"sum": 2, "product": 2, "pack": 2, "check": 2, "function": 2, "group": 2, "one": 1, "while": 2,
                  "constants": 1}.get(kind, 3)
    with tf.name_scope(key):
      result = self._op(kind, key, x, y, z, number)
    used = set(used[:used_parts])
    self._add(
        key, result % 100003, of_element=bool(self._of_element & used), of_step=bool(self._of_step & used))
    if self._of_own & used:
      self._of_own |= {key, f"{key}_predicate"}

  def _op(self, kind: str, key: Key, x: tf.Tensor, y: tf.Tensor, z: tf.Tensor, number: int) -> tf.Tensor:
    if kind == "sum":
      return x + y * number
    if kind == "product":
      return x * (y + number)
    if kind == "one":
      return x * 3 + number
    if kind == "pack":
      return tf.reduce_sum(tf.stack([x, x, y]) * np.arange(1, 4))
    if kind == "where":
      return tf.where(self._predicate(key, x), y, z + number)
    if kind == "cond":
      return tf.cond(self._predicate(key, x), lambda: y * number, lambda: z + number)
    if kind == "constants":
      return tf.cond(
          self._predicate(key, x), lambda: tf.constant(number, tf.int64), lambda: tf.constant(-number, tf.int64))
    if kind == "nested":
      inner = lambda: tf.cond(self._predicate(None, y), lambda: tf.constant(number, tf.int64), lambda: z)
      return tf.cond(self._predicate(key, x), inner, lambda: y)
    if kind == "while":
      return tf.while_loop(
          lambda i, _: i < number % 3, lambda i, value: (i + 1, (value * 2 + y) % 97), [tf.constant(0), x])[1]
    if kind == "check":
      with tf.control_dependencies([tf.debugging.assert_greater(x, tf.constant(-10**9, tf.int64))]):
        return x + y
    if kind == "function":
      return tf.function(lambda one, other: one * number + other)(x, y)
    with tf.control_dependencies([x]):
      return tf.tuple([y + number, x])[0]

  def _predicate(self, key: Key | None, x: tf.Tensor) -> tf.Tensor:
    predicate = x % 2 > 0
    if key is not None:
      self._tensors[f"{key}_predicate"] = predicate
    return predicate

  def _add_stage(self) -> None:
    possible = [key for key in self._numbers if key in self._of_element and key not in self._of_step]
    chosen = self._rng.sample(possible[-6:], min(len(possible), self._rng.choice([1, 1, 2, 3])))
    features = [self._tensors[key] for key in chosen]
    capacity = self._rng.randrange(1, 4)
    if self._with_stages:
      taken = tf.staged(features, capacity=capacity, feed_dict=self._feed_dict)
    else:
      # With one part of a record comes all of it.
      taken = [tf.identity(part) for part in tf.tuple(features)]
    for part in taken:
      key = f"staged{len(self._staged)}"
      self._staged.append(key)
      self._add(key, part, of_element=True)


def _random_run(rng: random.Random, graph: FeedGraph) -> Run:
  keys = sorted(key for key, tensor in graph.tensors.items() if graph.graph.is_feedable(tensor))
  feeds: dict[Key, Any] = {}
  for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
    key = rng.choice(keys)
    tensor = graph.tensors[key]
    if tensor.dtype == tf.string:
      feeds[key] = "other"
    else:
      feeds[key] = rng.random() < 0.5 if tensor.dtype == tf.bool else rng.randrange(500, 999)
  if "placeholder" in graph.tensors:
    feeds["placeholder"] = rng.randrange(9)
  fetches = rng.sample(graph.fetchable, min(len(graph.fetchable), rng.randrange(1, 5)))
  return Run(feeds, fetches)
