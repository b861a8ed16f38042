# SPDX-License-Identifier: Apache-2.0
"""Random models whose embeddings no step changes compute the same to the last bit with lookups ahead of the step."""

from __future__ import annotations

import random

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import smart_stage_comparison
from tensorflow_staging.python.testing import smart_stage_sessions

_GRAPHS = 40
_PARTS = 2
_STEPS = 6
_ROWS = 12
_WIDTH = 3
_BATCH = 4


class _Model:
  """A random model: features, lookups in tables, which may depend on other lookups, and a step that uses them."""

  def __init__(self, seed: int):
    self._chance = random.Random(seed)
    features = np.random.RandomState(seed).randint(0, _ROWS, [_STEPS + 8, 2, _BATCH]).astype(np.int64)
    record = tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(features)).get_next()
    self._ids = tf.unstack(record)
    self._tables = [self._table(number, seed) for number in range(self._chance.randint(1, 3))]
    self.rows: list[tf.Tensor] = []
    for _ in range(self._chance.randint(1, 5)):
      self.rows.append(self._lookup(self._chance.choice(self._tables), self._some_ids()))
    self._step()

  def _table(self, number: int, seed: int):
    with tf.variable_scope("", use_resource=self._chance.random() < 0.5):
      partitioner = tf.fixed_size_partitioner(2) if self._chance.random() < 0.3 else None
      return tf.get_variable(
          f"table_{number}", [_ROWS, _WIDTH], partitioner=partitioner, trainable=False,
          initializer=tf.random_uniform_initializer(-1, 1, seed=seed + number))

  def _some_ids(self) -> tf.Tensor:
    """Returns ids that come from the record, or from rows that were looked up before."""
    ids = self._chance.choice(self._ids)
    kind = self._chance.choice(["as they are", "moved", "unique", "of rows"])
    if kind == "moved":
      return tf.math.floormod(ids * 5 + self._chance.randrange(_ROWS), _ROWS)
    if kind == "unique":
      found = tf.unique(ids)
      return tf.gather(found.y, found.idx)
    if kind == "of rows" and self.rows:
      rows = tf.reshape(self._chance.choice(self.rows), [-1])[:_BATCH]
      return tf.math.floormod(tf.cast(rows * 1000, tf.int64), _ROWS)
    return ids

  def _lookup(self, table, ids: tf.Tensor) -> tf.Tensor:
    kind = self._chance.choice(["embedding_lookup", "sparse", "safe", "gather"])
    if kind == "gather" and isinstance(table, tf.Variable):
      return tf.gather(table, ids)
    if kind in ("sparse", "safe"):
      places = tf.constant([[0, 0], [0, 1], [2, 0], [3, 1]][:_BATCH], tf.int64)
      sparse = tf.SparseTensor(places, ids, [_BATCH, 2])
      combiner = self._chance.choice(["sum", "mean", "sqrtn"])
      if kind == "safe":
        return tf.nn.safe_embedding_lookup_sparse(table, sparse, combiner=combiner)
      return tf.nn.embedding_lookup_sparse(table, sparse, None, combiner=combiner)
    return tf.nn.embedding_lookup(table, ids, partition_strategy=self._chance.choice(["mod", "div"]))

  def _step(self) -> None:
    """Adds a step that trains a weight with all that was looked up."""
    weight = tf.get_variable("weight", [_WIDTH], initializer=tf.ones_initializer(), use_resource=True)
    joined = tf.concat(self.rows, axis=0)
    self.loss = tf.reduce_mean(tf.square(tf.reduce_sum(joined * weight, axis=1) - 1))
    self.train = tf.train.GradientDescentOptimizer(0.1).minimize(self.loss, var_list=[weight])

  def fetches(self) -> list:
    """Returns what a step fetches: what it computes, and sometimes rows."""
    rows = [row for row in self.rows if self._chance.random() < 0.3]
    return [self.loss, *rows, self.train]


def _run(fetches: list, config: tf.ConfigProto) -> tuple[list, bool]:
  """Runs steps; returns their values, and whether a step took lookups that had run ahead."""
  # Otherwise the two sessions may round sums differently.
  config.graph_options.rewrite_options.disable_meta_optimizer = True
  metadata = tf.RunMetadata()
  options = tf.RunOptions(output_partition_graphs=True)
  with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      values = [sess.run(fetches, options=options, run_metadata=metadata)]
      values += [sess.run(fetches) for _ in range(_STEPS - 1)]
  nodes = [node.name for graph in metadata.partition_graphs for node in graph.node if node.op == "TensorBufferTake"]
  return values, any(name.startswith("async_embedding") for name in nodes)


@pytest.mark.parametrize("part", range(_PARTS))
def test_random_models_compute_the_same_with_lookups_ahead(part):
  ahead = 0
  for seed in range(part * _GRAPHS // _PARTS, (part + 1) * _GRAPHS // _PARTS):
    with tf.Graph().as_default():
      fetches = _Model(seed).fetches()
      expected, _ = _run(fetches, tf.ConfigProto())
      config = smart_stage_sessions.async_embedding_config(smart_stage=seed % 2 == 0, capacity=1 + seed % 3)
      found, is_ahead = _run(fetches, config)
      ahead += is_ahead
      assert len(found) == len(expected)
      for step, (here, there) in enumerate(zip(found, expected)):
        assert all(map(smart_stage_comparison.same, here, there)), f"seed {seed}, step {step}"
  assert ahead > 0.9 * _GRAPHS / _PARTS
