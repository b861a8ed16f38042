#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""DLRM: "Deep Learning Recommendation Model for Personalization and Recommendation Systems" (Naumov et al., 2019).

An MLP turns the numbers into a vector as long as the embeddings of the categories. The dot products of all pairs of
these vectors, with the MLP's vector, are the input of a second MLP.
"""

from __future__ import annotations

import dataclasses
import pathlib
import sys

import numpy as np
import tensorflow as tf

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))

from modelzoo.base import clicks
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
  """DLRM."""

  optimizer: str = optimizer_setting("sgd")
  learning_rate: float = learning_rate_setting(0.1)
  bottom: tuple[int, ...] = setting((512, 256, 64), "sizes of the hidden layers over the numbers", least=1)
  top: tuple[int, ...] = setting((512, 256), "sizes of the hidden layers over the dot products", least=1)


def predict(features: Features, hyperparameters: Hyperparameters, training: bool) -> Output:
  """Adds the model."""
  del training
  size = hyperparameters.embedding_size
  table = layers.table("embeddings", hyperparameters.rows, size)
  embedded = tf.nn.embedding_lookup(table, features["ids"])
  bottom = layers.mlp(features["numbers"], (*hyperparameters.bottom, size), "bottom")
  vectors = tf.concat([tf.expand_dims(bottom, 1), embedded], axis=1)
  top = tf.concat([bottom, dot_products(vectors)], axis=1)
  return Output(layers.logit(layers.mlp(top, hyperparameters.top, "top")))


def dot_products(vectors: tf.Tensor) -> tf.Tensor:
  """Returns the dot products of all pairs of different vectors.

  Args:
    vectors: Shape [batch, n, size].

  Returns:
    Shape [batch, n·(n - 1) / 2].
  """
  count = int(vectors.shape[1])
  products = tf.matmul(vectors, vectors, transpose_b=True)
  rows, columns = np.tril_indices(count, -1)
  return tf.gather(tf.reshape(products, [-1, count * count]), rows * count + columns, axis=1)


MODEL = Model("DLRM", formats.CRITEO, Hyperparameters, clicks.prepare, predict)

if __name__ == "__main__":
  program.main(MODEL)
