# SPDX-License-Identifier: Apache-2.0
"""What the models over Taobao's format share: rows of embedding tables, and the embeddings of users and behaviours.

A behaviour is an item with its category.
"""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from modelzoo.base import layers
from modelzoo.base import taobao
from modelzoo.base.model import Features
from modelzoo.base.optimizers import Optimization
from modelzoo.base.settings import setting


@dataclasses.dataclass(frozen=True)
class Hyperparameters(Optimization):
  """The sizes of the embeddings, and the length of the history."""

  buckets: int = setting(100_000, "rows of the embedding tables of users and of items", least=1)
  category_buckets: int = setting(10_000, "rows of the embedding table of categories", least=1)
  embedding_size: int = setting(16, "length of an embedding", least=1)
  history: int = setting(50, "the newest entries of a history that are used", least=2)


def prepare(features: Features, hyperparameters: Hyperparameters, negative: bool = False) -> Features:
  """Turns the words of Taobao's format into rows of the embedding tables.

  Args:
    features: The parsed features.
    hyperparameters: The sizes.
    negative: Whether to return the histories of negatives, too.

  Returns:
    `user`, `item` and `category`, int64 of shape [batch]; `history_items` and `history_categories`, int64 of shape
    [batch, history], padded at the end; `history_lengths`, int32 of shape [batch]; with negatives also
    `negative_items` and `negative_categories`, like the history.
  """
  buckets = hyperparameters.buckets, hyperparameters.category_buckets
  result = taobao.word_ids(features, *buckets)
  for each in (False, True) if negative else (False,):
    result |= taobao.history_ids(features, *buckets, hyperparameters.history, each)
  return result


def mask(features: Features) -> tf.Tensor:
  """Returns 1.0 for each entry of the histories and 0.0 for the padding, of shape [batch, history, 1]."""
  length = int(features["history_items"].shape[1])
  return tf.expand_dims(tf.sequence_mask(features["history_lengths"], length, tf.float32), 2)


class Tables:
  """The embedding tables of users, items and categories."""

  def __init__(self, hyperparameters: Hyperparameters):
    """Creates the variables."""
    size = hyperparameters.embedding_size
    self._users = layers.table("users", hyperparameters.buckets, size)
    self._items = layers.table("items", hyperparameters.buckets, size)
    self._categories = layers.table("categories", hyperparameters.category_buckets, size)

  def users(self, ids: tf.Tensor) -> tf.Tensor:
    """Returns the embeddings of users, from shape [...] to [..., size]."""
    return tf.nn.embedding_lookup(self._users, ids)

  def behaviours(self, items: tf.Tensor, categories: tf.Tensor) -> tf.Tensor:
    """Returns the embeddings of items beside those of their categories, from shape [...] to [..., 2·size]."""
    return tf.concat(
        [tf.nn.embedding_lookup(self._items, items), tf.nn.embedding_lookup(self._categories, categories)], axis=-1)
