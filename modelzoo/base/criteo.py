# SPDX-License-Identifier: Apache-2.0
"""The format of Criteo's click logs: a label, 13 numbers and 26 categories for each row.

A CSV file has these 40 columns, separated by commas, without a header; numbers and categories may be missing. A
TFRecord file has one tf.train.Example for each row, with a feature for each column that is not missing.
"""

from __future__ import annotations

import tensorflow as tf

LABEL = "clicked"
NUMBERS = tuple(f"I{i}" for i in range(1, 14))
CATEGORIES = tuple(f"C{i}" for i in range(1, 27))
COLUMNS = (LABEL, *NUMBERS, *CATEGORIES)

Features = dict[str, tf.Tensor]


def parse_csv(lines: tf.Tensor) -> tuple[Features, tf.Tensor]:
  """Parses lines of a CSV file.

  Args:
    lines: Strings of shape [batch].

  Returns:
    The features, `I1` to `I13` of float32 and `C1` to `C26` of string, and the labels of float32, each of shape
    [batch]. A number that is missing is 0, a category that is missing is the empty string.
  """
  defaults = [[0.0]] + [[0.0]] * len(NUMBERS) + [[""]] * len(CATEGORIES)
  columns = dict(zip(COLUMNS, tf.io.decode_csv(lines, defaults), strict=True))
  return columns, columns.pop(LABEL)


def parse_examples(examples: tf.Tensor) -> tuple[Features, tf.Tensor]:
  """Parses serialized tf.train.Example messages; arguments and result are those of `parse_csv`."""
  number = tf.io.FixedLenFeature([], tf.float32, 0.0)
  category = tf.io.FixedLenFeature([], tf.string, "")
  specification = dict.fromkeys((LABEL, *NUMBERS), number) | dict.fromkeys(CATEGORIES, category)
  columns = tf.io.parse_example(examples, specification)
  return columns, columns.pop(LABEL)


def dense_numbers(features: Features) -> tf.Tensor:
  """Returns log(1 + x) of the 13 numbers, of shape [batch, 13]; negative numbers count as 0."""
  return tf.math.log1p(tf.nn.relu(tf.stack([features[name] for name in NUMBERS], axis=1)))


def category_ids(features: Features, buckets: int) -> tf.Tensor:
  """Returns a row of one embedding table for each category.

  Args:
    features: The parsed features.
    buckets: The number of rows that each column has in the table.

  Returns:
    Integers from 0 to 26·buckets - 1, of type int64 and shape [batch, 26].
  """
  words = tf.stack([features[name] for name in CATEGORIES], axis=1)
  return tf.string_to_hash_bucket_fast(words, buckets) + buckets * tf.range(len(CATEGORIES), dtype=tf.int64)
