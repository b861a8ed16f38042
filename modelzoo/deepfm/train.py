#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""DeepFM: "DeepFM: A Factorization-Machine based Neural Network for CTR Prediction" (Guo et al., 2017).

A factorization machine adds a weight for each category and the dot products of all pairs of their embeddings. An MLP
over the same embeddings adds its own log-odds. Each number is a field, too: its embedding is multiplied by its value.
"""

from __future__ import annotations

import dataclasses
import pathlib
import sys

import tensorflow as tf

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))

from modelzoo.base import clicks
from modelzoo.base import criteo
from modelzoo.base import formats
from modelzoo.base import layers
from modelzoo.base import program
from modelzoo.base.model import Features
from modelzoo.base.model import Model
from modelzoo.base.model import Output
from modelzoo.base.optimizers import learning_rate_setting
from modelzoo.base.optimizers import optimizer_setting
from modelzoo.base.settings import setting


@dataclasses.dataclass(frozen=True)
class Hyperparameters(clicks.Hyperparameters):
  """DeepFM."""

  optimizer: str = optimizer_setting("adam")
  learning_rate: float = learning_rate_setting(0.001)
  embedding_size: int = setting(10, "length of an embedding", least=1)
  hidden: tuple[int, ...] = setting((400, 400, 400), "sizes of the hidden layers", least=1)


def predict(features: Features, hyperparameters: Hyperparameters, training: bool) -> Output:
  """Adds the model."""
  del training
  rows, size = hyperparameters.rows, hyperparameters.embedding_size
  numbers, ids = features["numbers"], features["ids"]
  with tf.variable_scope("first_order"):
    weights = tf.nn.embedding_lookup(layers.table("category_weights", rows, 1), ids)
    first_order = tf.reduce_sum(weights, axis=[1, 2]) + layers.logit(numbers, "numbers")
  number_embeddings = tf.get_variable("number_embeddings", [len(criteo.NUMBERS), size])
  embedded = tf.nn.embedding_lookup(layers.table("embeddings", rows, size), ids)
  vectors = tf.concat([embedded, tf.expand_dims(numbers, 2) * number_embeddings], axis=1)
  fields = len(criteo.CATEGORIES) + len(criteo.NUMBERS)
  deep = layers.mlp(tf.reshape(vectors, [-1, fields * size]), hyperparameters.hidden, "deep")
  return Output(first_order + pairs(vectors) + layers.logit(deep))


def pairs(vectors: tf.Tensor) -> tf.Tensor:
  """Returns the sum of the dot products of all pairs of different vectors, from shape [batch, n, size] to [batch]."""
  square_of_sum = tf.square(tf.reduce_sum(vectors, axis=1))
  sum_of_squares = tf.reduce_sum(tf.square(vectors), axis=1)
  return 0.5 * tf.reduce_sum(square_of_sum - sum_of_squares, axis=1)


MODEL = Model("DeepFM", formats.CRITEO, Hyperparameters, clicks.prepare, predict)

if __name__ == "__main__":
  program.main(MODEL)
