# SPDX-License-Identifier: Apache-2.0
"""The format of Taobao's logs, as DIN and DIEN use it: a user, an item, and the items that the user clicked before.

A CSV file has six columns, separated by tabs, without a header: the label, the user, the item, its category, and the
items and categories of the user's history, oldest first. The entries of a history are separated by the control
character 2. The file `<name>_negative.csv` beside it has the same number of lines. Its two columns have, for each entry
of the history, an item that the user did not click, and its category.

A TFRecord file has one tf.train.Example for each row, with a feature for each of the eight columns.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

LABEL = "clicked"
WORDS = ("user", "item", "category")
HISTORY = ("history_items", "history_categories")
NEGATIVE = ("negative_items", "negative_categories")
COLUMNS = (LABEL, *WORDS, *HISTORY)

SEPARATOR = "\t"
HISTORY_SEPARATOR = "\x02"

Features = dict[str, tf.Tensor | tf.RaggedTensor]


def parse_csv(lines: tf.Tensor) -> tuple[Features, tf.Tensor]:
  """Parses lines of a CSV file.

  Args:
    lines: Strings of shape [batch], or of shape [batch, 2] if each line is followed by its line of negatives.

  Returns:
    The features and the labels, of float32 and shape [batch]. `user`, `item` and `category` are strings of shape
    [batch]; `history_items` and `history_categories`, and with negatives also `negative_items` and
    `negative_categories`, are ragged strings of shape [batch, None].
  """
  negatives = {}
  if lines.shape.rank == 2:
    lines, others = tf.unstack(lines, num=2, axis=1)
    negatives = dict(zip(NEGATIVE, _decode(others, [[""], [""]]), strict=True))
  columns = dict(zip(COLUMNS, _decode(lines, [[0.0]] + [[""]] * 5), strict=True)) | negatives
  for name in (*HISTORY, *negatives):
    columns[name] = tf.compat.v2.strings.split(columns[name], HISTORY_SEPARATOR)
  return columns, columns.pop(LABEL)


def _decode(lines: tf.Tensor, defaults: list) -> list[tf.Tensor]:
  return tf.io.decode_csv(lines, defaults, field_delim=SEPARATOR, use_quote_delim=False)


def parse_examples(examples: tf.Tensor) -> tuple[Features, tf.Tensor]:
  """Parses serialized tf.train.Example messages of shape [batch]; the result is that of `parse_csv` with negatives."""
  specification = {LABEL: tf.io.FixedLenFeature([], tf.float32)}
  specification |= dict.fromkeys(WORDS, tf.io.FixedLenFeature([], tf.string, ""))
  specification |= {name: tf.io.RaggedFeature(tf.string, row_splits_dtype=tf.int64) for name in (*HISTORY, *NEGATIVE)}
  columns = tf.io.parse_example(examples, specification)
  return columns, columns.pop(LABEL)


class Behaviours(NamedTuple):
  """Items with their categories, as rows of two embedding tables: int64 of one shape."""

  items: tf.Tensor
  categories: tf.Tensor


def word_ids(features: Features, item_buckets: int, category_buckets: int) -> dict[str, tf.Tensor]:
  """Returns the user, the item and the category as rows of embedding tables.

  Args:
    features: The parsed features.
    item_buckets: The number of rows of the tables of users and items.
    category_buckets: The number of rows of the table of categories.

  Returns:
    `user`, `item` and `category`, of int64 and shape [batch].
  """
  buckets = dict(zip(WORDS, (item_buckets, item_buckets, category_buckets), strict=True))
  return {name: tf.string_to_hash_bucket_fast(features[name], buckets[name]) for name in WORDS}


def history_ids(
    features: Features, item_buckets: int, category_buckets: int, length: int, negative: bool = False
) -> dict[str, tf.Tensor]:
  """Returns the newest entries of the histories as rows of embedding tables.

  Args:
    features: The parsed features.
    item_buckets: The number of rows of the table of items.
    category_buckets: The number of rows of the table of categories.
    length: How many entries of each history are used.
    negative: Whether to return the negatives instead.

  Returns:
    The two columns, of int64 and shape [batch, length], padded with 0 at the end; unless they are the negatives, also
    `history_lengths`, of int32 and shape [batch].
  """
  names = NEGATIVE if negative else HISTORY
  result = {}
  for name, buckets in zip(names, (item_buckets, category_buckets), strict=True):
    newest = features[name][:, -length:]
    ids = newest.with_values(tf.string_to_hash_bucket_fast(newest.values, buckets))
    result[name] = ids.to_tensor(0, shape=[None, length])
    if not negative:
      result["history_lengths"] = tf.cast(newest.row_lengths(), tf.int32)
  return result
