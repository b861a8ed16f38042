# SPDX-License-Identifier: Apache-2.0
"""A model with one hidden layer, and the random records that it learns from."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from lib import timed_work
from lib import ways

# The inputs of a row, and the units of the layer.
SIZE = 1024
_LEARNING_RATE = 0.1


def numbered(number: tf.Tensor, batch: int) -> ways.Record:
  """Returns the inputs of shape [batch, SIZE] and the targets of shape [batch, 1] of a record, given its number."""
  inputs = tf.random.stateless_normal([batch, SIZE], seed=tf.stack([number, 0]))
  return [inputs, tf.cast(tf.reduce_sum(inputs, axis=1, keepdims=True) > 0, tf.int32)]


def source(batch: int) -> ways.Source:
  """Returns the records 0, 1, 2 and so on."""
  return ways.Source(
      lambda: numbered(tf.compat.v1.data.make_one_shot_iterator(timed_work.counter()).get_next(), batch),
      lambda: timed_work.counter().map(lambda number: tuple(numbered(number, batch))))


def same_record(batch: int) -> ways.Source:
  """Returns a source whose records are all the same, in memory."""

  def record() -> ways.Record:
    return list(tf.compat.v1.data.make_one_shot_iterator(dataset()).get_next())

  def dataset() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensors((np.ones([batch, SIZE], np.float32), np.ones([batch, 1], np.int32))).repeat()

  return ways.Source(record, dataset)


def train(taken: ways.Record) -> list[tf.Tensor]:
  """Adds the model; returns its loss, which is computed before the variables change, and the new global step."""
  inputs, targets = taken
  random = np.random.default_rng(0)

  def variable(name: str, *shape: int) -> tf.Variable:
    scale = math.sqrt(2 / SIZE) if len(shape) > 1 else 0
    return tf.compat.v1.get_variable(name, initializer=(scale * random.standard_normal(shape)).astype(np.float32))

  hidden = tf.nn.relu(inputs @ variable("w1", SIZE, SIZE) + variable("b1", SIZE))
  logits = hidden @ variable("w2", SIZE, 1) + variable("b2", 1)
  losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.cast(targets, tf.float32), logits=logits)
  loss = tf.reduce_mean(losses)
  step = tf.compat.v1.train.get_or_create_global_step()
  trained = tf.compat.v1.train.GradientDescentOptimizer(_LEARNING_RATE).minimize(loss, step)
  with tf.control_dependencies([trained]):
    return [loss, tf.identity(step)]
