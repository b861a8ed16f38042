# SPDX-License-Identifier: Apache-2.0
"""Where the records of random graphs come from: iterators of each kind, over datasets of each structure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

# How an iterator may begin; as often as they are named.
WAYS = ("one shot", "initializable", "initializable", "structure", "structure")

_WORDS = ("red green", "blue", "word1", "word2 word3", "9 8 7", "gray")

# Of a kind that random ops know, and its value.
Typed = tuple[str, tf.Tensor | tf.SparseTensor]


class SourceRecord(NamedTuple):
  """One `get_next()` and what it needs."""

  typed: list[Typed]
  # To be run before anything else, if there is one.
  initializer: tf.Operation | None


def _numpy_components(rng: random.Random, rows: int) -> dict[str, np.ndarray]:
  numbers = np.random.RandomState(rng.randrange(2**31))
  return {
      "int": numbers.randint(0, 97, rows).astype(np.int64),
      "float": numbers.randint(0, 97, rows).astype(np.float32),
      "text": np.array([_WORDS[i] for i in numbers.randint(0, len(_WORDS), rows)], dtype=object),
      "matrix": numbers.randint(0, 97, [rows, 2]).astype(np.float32),
  }


def _sparse_component(rng: random.Random, rows: int) -> tf.SparseTensor:
  columns = [rng.randrange(3) for _ in range(rows)]
  return tf.SparseTensor(
      [[row, column] for row, column in enumerate(columns)],
      tf.constant([rng.randrange(97) for _ in range(rows)], tf.int64), [rows, 3])


def _structure(rng: random.Random, rows: int) -> tuple[list[str], object]:
  """Kinds of the components in the order of `tf.nest.flatten`, and the components in a structure."""
  components = _numpy_components(rng, rows)
  names = sorted(rng.sample(sorted(components), rng.randrange(1, 4)))
  parts = {name: components[name] for name in names}
  if rng.random() < 0.15:
    parts["sparse_int"] = _sparse_component(rng, rows)
  names = sorted(parts)
  if len(names) == 1:
    return names, parts[names[0]]
  if rng.random() < 0.5:
    return names, parts
  return names, tuple(parts[name] for name in names)


def _dataset(components: object, batch: int, ragged_end: bool, rng: random.Random) -> tf.data.Dataset:
  dataset = tf.data.Dataset.from_tensor_slices(components)
  if rng.random() < 0.15:
    dataset = dataset.shuffle(4, seed=rng.randrange(1, 99))
  dataset = dataset.batch(batch, drop_remainder=not ragged_end)
  if rng.random() < 0.15:
    dataset = dataset.prefetch(1)
  # What tf.data does to a dataset is the same with and without a stage, and takes a while.
  options = tf.data.Options()
  options.autotune.enabled = False
  options.experimental_optimization.apply_default_optimizations = False
  return dataset.with_options(options)


def add_source(
    rng: random.Random, ways: Sequence[str], batch: int, records: int | None, ragged_end: bool,
    after: list[tf.Tensor]) -> SourceRecord:
  """Adds an iterator to the default graph.

  Args:
    rng: Decides everything.
    ways: Those of `WAYS` that are possible.
    batch: How many rows a record has.
    records: How many records there are; None is no end.
    ragged_end: Whether the last record of a pass over the data has fewer rows, and no shape is known.
    after: What `get_next()` has to wait for.

  Returns:
    What its `get_next()` gives.
  """
  passed = records or rng.randrange(2, 6)
  kinds, components = _structure(rng, passed * batch - (1 if ragged_end and batch > 1 else 0))
  dataset = _dataset(components, batch, ragged_end, rng)
  if records is None:
    dataset = dataset.repeat()
  iterator, initializer = _iterator(dataset, rng.choice(ways))
  by_hand = rng.random() < 0.1
  # A record that is staged by hand waits for nothing of the step.
  with tf.control_dependencies(None if by_hand else after):
    record = tf.nest.flatten(iterator.get_next())
  if by_hand:
    record = tf.nest.flatten(tf.staged(record, capacity=rng.randrange(1, 3)))
  return SourceRecord(list(zip(kinds, record, strict=True)), initializer)


def _iterator(
    dataset: tf.data.Dataset, way: str) -> tuple[tf.data.Iterator, tf.Operation | None]:
  """An iterator and its initializer, if it has one."""
  if way == "one shot":
    return tf.data.make_one_shot_iterator(dataset), None
  if way == "initializable":
    iterator = tf.data.make_initializable_iterator(dataset)
    return iterator, iterator.initializer
  iterator = tf.data.Iterator.from_structure(
      tf.data.get_output_types(dataset), tf.data.get_output_shapes(dataset),
      output_classes=tf.data.get_output_classes(dataset))
  return iterator, iterator.make_initializer(dataset)
