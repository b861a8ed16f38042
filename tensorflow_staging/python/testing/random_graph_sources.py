# SPDX-License-Identifier: Apache-2.0
"""The sources of random graphs: iterators of every kind, over datasets of every structure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple
from typing import Union

import numpy as np
import tensorflow as tf

# The kinds of iterators. One that is listed twice is chosen twice as often.
ITERATOR_KINDS = ("one shot", "initializable", "initializable", "structure", "structure")

_WORDS = ("red green", "blue", "word1", "word2 word3", "9 8 7", "gray")

# The kind of a value, one of those of `random_graph_ops`, and the value.
TypedValue = tuple[str, Union[tf.Tensor, tf.SparseTensor]]


class SourceRecord(NamedTuple):
  """One source: the components of its `get_next()`, and its initializer."""

  values: list[TypedValue]
  # None if the iterator needs none.
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
  """Returns the kinds of random components in the order of `tf.nest.flatten`, and the components in a structure."""
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
  # tf.data optimizes a dataset in the same way with and without a stage; skipping that saves time.
  options = tf.data.Options()
  options.autotune.enabled = False
  options.experimental_optimization.apply_default_optimizations = False
  return dataset.with_options(options)


def add_source(
    rng: random.Random, iterator_kinds: Sequence[str], batch: int, records: int | None, ragged_end: bool,
    after: list[tf.Tensor]) -> SourceRecord:
  """Adds an iterator to the default graph.

  Args:
    rng: Makes every random choice.
    iterator_kinds: The kinds to choose from, of `ITERATOR_KINDS`.
    batch: The number of rows in a record.
    records: The number of records after which the data ends; None means that it never ends.
    ragged_end: Whether the last record of a pass over the data has fewer rows, so that no static shape is known.
    after: The tensors that `get_next()` waits for through control edges.

  Returns:
    The components of its `get_next()`.
  """
  records_per_pass = records or rng.randrange(2, 6)
  kinds, components = _structure(rng, records_per_pass * batch - (1 if ragged_end and batch > 1 else 0))
  dataset = _dataset(components, batch, ragged_end, rng)
  if records is None:
    dataset = dataset.repeat()
  iterator, initializer = _iterator(dataset, rng.choice(iterator_kinds))
  manual = rng.random() < 0.1
  # The region of a manual stage cannot wait for a node of the step.
  with tf.control_dependencies(None if manual else after):
    record = tf.nest.flatten(iterator.get_next())
  if manual:
    record = tf.nest.flatten(tf.staged(record, capacity=rng.randrange(1, 3)))
  return SourceRecord(list(zip(kinds, record)), initializer)


def _iterator(
    dataset: tf.data.Dataset, kind: str) -> tuple[tf.data.Iterator, tf.Operation | None]:
  """Returns an iterator of this kind, and its initializer if it has one."""
  if kind == "one shot":
    return tf.data.make_one_shot_iterator(dataset), None
  if kind == "initializable":
    iterator = tf.data.make_initializable_iterator(dataset)
    return iterator, iterator.initializer
  iterator = tf.data.Iterator.from_structure(
      tf.data.get_output_types(dataset), tf.data.get_output_shapes(dataset),
      output_classes=tf.data.get_output_classes(dataset))
  return iterator, iterator.make_initializer(dataset)
