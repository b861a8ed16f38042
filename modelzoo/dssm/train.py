#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""DSSM: "Learning Deep Structured Semantic Models for Web Search using Clickthrough Data" (Huang et al., 2013).

One tower of dense layers maps the user, with the items of the history in place of the paper's query, to a vector;
another tower maps the item. The cosine of the two vectors, times a factor, gives the log-odds of a click.
"""

from __future__ import annotations

import dataclasses
import pathlib
import sys

import tensorflow as tf

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))

from modelzoo.base import behaviours
from modelzoo.base import formats
from modelzoo.base import layers
from modelzoo.base import program
from modelzoo.base.model import Features
from modelzoo.base.model import Model
from modelzoo.base.model import Output
from modelzoo.base.optimizers import learning_rate_setting
from modelzoo.base.optimizers import optimizer_setting
from modelzoo.base.settings import setting

_SMALLEST_NORM = 1e-6


@dataclasses.dataclass(frozen=True)
class Hyperparameters(behaviours.Hyperparameters):
  """DSSM."""

  optimizer: str = optimizer_setting("sgd")
  learning_rate: float = learning_rate_setting(0.1)
  hidden: tuple[int, ...] = setting((300, 300, 128), "sizes of the layers of each tower", least=1)


def prepare(features: Features, hyperparameters: Hyperparameters) -> Features:
  """Turns the words into rows of the embedding tables."""
  return behaviours.prepare(features, hyperparameters)


def predict(features: Features, hyperparameters: Hyperparameters, training: bool) -> Output:
  """Adds the model."""
  del training
  tables = behaviours.Tables(hyperparameters)
  history = tables.behaviours(features["history_items"], features["history_categories"])
  mask = behaviours.mask(features)
  mean = tf.reduce_sum(history * mask, axis=1) / tf.maximum(tf.reduce_sum(mask, axis=1), 1.0)
  user = _tower(tf.concat([tables.users(features["user"]), mean], axis=1), hyperparameters, "user_tower")
  item = _tower(tables.behaviours(features["item"], features["category"]), hyperparameters, "item_tower")
  factor = tf.get_variable("factor", [], initializer=tf.constant_initializer(5.0))
  bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
  return Output(factor * tf.reduce_sum(user * item, axis=1) + bias)


def _tower(x: tf.Tensor, hyperparameters: Hyperparameters, name: str) -> tf.Tensor:
  """Returns a vector of length 1 for each row."""
  return tf.nn.l2_normalize(layers.mlp(x, hyperparameters.hidden, name, tf.nn.tanh), axis=1, epsilon=_SMALLEST_NORM)


MODEL = Model("DSSM", formats.TAOBAO, Hyperparameters, prepare, predict)

if __name__ == "__main__":
  program.main(MODEL)
