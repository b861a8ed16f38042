#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""DIN: "Deep Interest Network for Click-Through Rate Prediction" (Zhou et al., 2018).

A small MLP, the activation unit, weighs each item of the history by how much it says about the item in question. The
weighted sum of the history is an input of the MLP that predicts.
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
from modelzoo.din import dice


@dataclasses.dataclass(frozen=True)
class Hyperparameters(behaviours.Hyperparameters):
  """DIN."""

  optimizer: str = optimizer_setting("sgd")
  learning_rate: float = learning_rate_setting(0.1)
  attention: tuple[int, ...] = setting((36,), "sizes of the hidden layers of the activation unit", least=1)
  hidden: tuple[int, ...] = setting((200, 80), "sizes of the hidden layers", least=1)


def prepare(features: Features, hyperparameters: Hyperparameters) -> Features:
  """Turns the words into rows of the embedding tables."""
  return behaviours.prepare(features, hyperparameters)


def predict(features: Features, hyperparameters: Hyperparameters, training: bool) -> Output:
  """Adds the model."""
  tables = behaviours.Tables(hyperparameters)
  item = tables.behaviours(features["item"], features["category"])
  history = tables.behaviours(features["history_items"], features["history_categories"])
  mask = behaviours.mask(features)
  with tf.variable_scope("activation_unit"):
    weights = activation_unit(item, history, hyperparameters, training) * mask
  interest = tf.reduce_sum(history * weights, axis=1)
  total = tf.reduce_sum(history * mask, axis=1)
  x = tf.concat([tables.users(features["user"]), item, interest, total, item * total], axis=1)
  return Output(layers.logit(layers.mlp(x, hyperparameters.hidden, "hidden", dice.activation(training))))


def activation_unit(
    item: tf.Tensor, history: tf.Tensor, hyperparameters: Hyperparameters, training: bool) -> tf.Tensor:
  """Returns how much each entry of the history says about the item; the weights are not normalised.

  Args:
    item: Shape [batch, size].
    history: Shape [batch, length, size].
    hyperparameters: The sizes of the layers.
    training: Whether the model is trained.

  Returns:
    Shape [batch, length, 1].
  """
  item = tf.broadcast_to(tf.expand_dims(item, 1), tf.shape(history))
  size = int(history.shape[2])
  x = tf.concat([item, history, item - history, item * history], axis=2)
  x = layers.mlp(tf.reshape(x, [-1, 4 * size]), hyperparameters.attention, "hidden", dice.activation(training))
  return tf.reshape(layers.dense(x, 1, "weight"), [-1, int(history.shape[1]), 1])


MODEL = Model("DIN", formats.TAOBAO, Hyperparameters, prepare, predict)

if __name__ == "__main__":
  program.main(MODEL)
