#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wide & Deep: "Wide & Deep Learning for Recommender Systems" (Cheng et al., 2016).

A linear model over crossed categories, trained by FTRL, adds its log-odds to those of an MLP over embeddings and
numbers, trained by AdaGrad.

The columns are those of tf.feature_column, which hash and cross strings in the model itself. So tf.staged runs little
more than the parsing ahead, and SmartStage also the hashing and crossing.
"""

from __future__ import annotations

import dataclasses
import pathlib
import sys

import tensorflow as tf

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))

from modelzoo.base import criteo
from modelzoo.base import formats
from modelzoo.base import layers
from modelzoo.base import program
from modelzoo.base.model import Features
from modelzoo.base.model import Model
from modelzoo.base.model import Output
from modelzoo.base.optimizers import learning_rate_setting
from modelzoo.base.settings import Settings
from modelzoo.base.settings import setting

# Pairs of categories with few values, whose pairs are seen often enough to learn a weight for each.
_CROSSED = (("C6", "C9"), ("C17", "C20"), ("C22", "C23"))
_MISSING = "missing"


@dataclasses.dataclass(frozen=True)
class Hyperparameters(Settings):
  """Wide & Deep."""

  learning_rate: float = learning_rate_setting(0.01)
  wide_learning_rate: float = setting(0.05, "the learning rate of the linear model", least=0.0)
  l1: float = setting(0.001, "the strength of the linear model's L1 regularization", least=0.0)
  buckets: int = setting(10_000, "rows of the embedding table of each category, and of each cross", least=2)
  embedding_size: int = setting(32, "length of an embedding", least=1)
  hidden: tuple[int, ...] = setting((1024, 512, 256), "sizes of the hidden layers", least=1)


def prepare(features: Features, hyperparameters: Hyperparameters) -> Features:
  """Gives missing categories a value of their own, so that each row has one value of each column."""
  del hyperparameters
  words = tf.stack([features[name] for name in criteo.CATEGORIES], axis=1)
  words = tf.where(tf.equal(words, ""), tf.fill(tf.shape(words), _MISSING), words)
  return features | dict(zip(criteo.CATEGORIES, tf.unstack(words, len(criteo.CATEGORIES), axis=1), strict=True))


def predict(features: Features, hyperparameters: Hyperparameters, training: bool) -> Output:
  """Adds the model."""
  del training
  column, buckets = tf.feature_column, hyperparameters.buckets
  categories = [column.categorical_column_with_hash_bucket(name, buckets) for name in criteo.CATEGORIES]
  # A weight of the linear model is an embedding of length 1.
  weights = [
      column.embedding_column(
          column.crossed_column(pair, buckets), 1, initializer=tf.zeros_initializer(), use_safe_embedding_lookup=False)
      for pair in _CROSSED]
  numbers = [
      column.numeric_column(name, normalizer_fn=lambda x: tf.math.log1p(tf.nn.relu(x))) for name in criteo.NUMBERS]
  # No row lacks a value, so the lookup need not be safe against that, which would take most of the graph.
  embeddings = [
      column.embedding_column(each, hyperparameters.embedding_size, use_safe_embedding_lookup=False)
      for each in categories]
  with tf.variable_scope("wide"):
    wide = tf.reduce_sum(column.input_layer(features, weights), axis=1)
  with tf.variable_scope("deep"):
    deep = layers.mlp(column.input_layer(features, embeddings + numbers), hyperparameters.hidden, "hidden")
    return Output(wide + layers.logit(deep))


def train(loss: tf.Tensor, hyperparameters: Hyperparameters) -> tf.Operation:
  """Adds the op that trains both parts, from the same loss."""
  ftrl = tf.train.FtrlOptimizer(
      hyperparameters.wide_learning_rate, l1_regularization_strength=hyperparameters.l1)
  adagrad = tf.train.AdagradOptimizer(hyperparameters.learning_rate)
  wide, deep = tf.trainable_variables("wide/"), tf.trainable_variables("deep/")
  gradients = tf.gradients(loss, wide + deep)
  return tf.group(
      ftrl.apply_gradients(zip(gradients[: len(wide)], wide, strict=True)),
      adagrad.apply_gradients(zip(gradients[len(wide) :], deep, strict=True)))


MODEL = Model("Wide & Deep", formats.CRITEO, Hyperparameters, prepare, predict, train)

if __name__ == "__main__":
  program.main(MODEL)
