#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""DIEN: "Deep Interest Evolution Network for Click-Through Rate Prediction" (Zhou et al., 2019).

A GRU extracts the user's interest at each entry of the history; an auxiliary loss trains its state to predict the next
entry. An AUGRU, a GRU whose update gate is scaled by an attention for the item in question, follows how the interest in
this item evolves. Its last state is an input of the MLP that predicts.
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
from modelzoo.dien.gru import gru
from modelzoo.din import dice

_LITTLE = -1e9


@dataclasses.dataclass(frozen=True)
class Hyperparameters(behaviours.Hyperparameters):
  """DIEN."""

  optimizer: str = optimizer_setting("adam")
  learning_rate: float = learning_rate_setting(0.001)
  auxiliary_weight: float = setting(1.0, "the weight of the auxiliary loss", least=0.0)
  hidden: tuple[int, ...] = setting((200, 80), "sizes of the hidden layers", least=1)


def prepare(features: Features, hyperparameters: Hyperparameters) -> Features:
  """Turns the words into rows of the embedding tables."""
  return behaviours.prepare(features, hyperparameters, negative=True)


def predict(features: Features, hyperparameters: Hyperparameters, training: bool) -> Output:
  """Adds the model."""
  tables = behaviours.Tables(hyperparameters)
  item = tables.behaviours(features["item"], features["category"])
  history = tables.behaviours(features["history_items"], features["history_categories"])
  lengths, size = features["history_lengths"], 2 * hyperparameters.embedding_size
  interests = gru(history, lengths, size, "interest_extractor")
  scores = attention(interests, item, lengths)
  evolved = gru(interests, lengths, size, "interest_evolution", scores)[:, -1]
  total = tf.reduce_sum(history * behaviours.mask(features), axis=1)
  x = tf.concat([tables.users(features["user"]), item, total, item * total, evolved], axis=1)
  logits = layers.logit(layers.mlp(x, hyperparameters.hidden, "hidden", dice.activation(training)))
  if not training:
    return Output(logits)
  negatives = tables.behaviours(features["negative_items"], features["negative_categories"])
  return Output(logits, hyperparameters.auxiliary_weight * auxiliary_loss(interests, history, negatives, lengths))


def attention(interests: tf.Tensor, item: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
  """Returns the softmax over each row's interests of how well they fit the item.

  Args:
    interests: Shape [batch, steps, size].
    item: Shape [batch, n].
    lengths: How many of the steps a row has; shape [batch].

  Returns:
    Shape [batch, steps]; 0 after the end of a row.
  """
  wanted = layers.dense(item, int(interests.shape[2]), "attention")
  scores = tf.squeeze(tf.matmul(interests, tf.expand_dims(wanted, 2)), 2)
  used = tf.sequence_mask(lengths, int(interests.shape[1]))
  return tf.nn.softmax(tf.where(used, scores, tf.fill(tf.shape(scores), _LITTLE)))


def auxiliary_loss(
    interests: tf.Tensor, history: tf.Tensor, negatives: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
  """Returns the mean cross-entropy of telling the next entry of each history from a negative by the interest before it.

  Args:
    interests: Shape [batch, steps, size].
    history: Shape [batch, steps, size].
    negatives: Shape [batch, steps, size].
    lengths: How many of the steps a row has; shape [batch].
  """
  steps = int(history.shape[1])
  used = tf.sequence_mask(lengths - 1, steps - 1, tf.float32)
  loss = 0.0
  for entries, label in ((history, 1.0), (negatives, 0.0)):
    logits = tf.reduce_sum(interests[:, :-1] * entries[:, 1:], axis=2)
    loss += tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.fill(tf.shape(logits), label), logits=logits)
  return tf.reduce_sum(loss * used) / tf.maximum(2.0 * tf.reduce_sum(used), 1.0)


MODEL = Model("DIEN", formats.TAOBAO_WITH_NEGATIVES, Hyperparameters, prepare, predict)

if __name__ == "__main__":
  program.main(MODEL)
