# SPDX-License-Identifier: Apache-2.0
"""The formats of files: which columns they have, and whether they are lines of text or messages."""

from __future__ import annotations

import os
from collections.abc import Callable
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from modelzoo.base import criteo
from modelzoo.base import taobao

KINDS = ("csv", "tfrecord")
NEGATIVE_SUFFIX = "_negative"

_READ_BYTES = 1 << 20


class Reader(NamedTuple):
  """How the files of a folder are read."""

  # Returns the dataset of a file's records, given the file's name.
  open: Callable[[tf.Tensor], tf.data.Dataset]
  # Returns the features and labels of a batch of records.
  parse: Callable[[tf.Tensor], tuple[dict, tf.Tensor]]


class Format(NamedTuple):
  """The columns of files."""

  name: str
  csv: Reader
  tfrecord: Reader


def reader(format_: Format, files: Sequence[str]) -> Reader:
  """Returns the reader for files, which all have the same ending, .csv or .tfrecord."""
  return format_.csv if os.path.splitext(files[0])[1] == ".csv" else format_.tfrecord


def _lines(file: tf.Tensor) -> tf.data.Dataset:
  return tf.data.TextLineDataset(file, buffer_size=_READ_BYTES)


def _lines_with_negatives(file: tf.Tensor) -> tf.data.Dataset:
  beside = tf.strings.regex_replace(file, r"\.csv$", f"{NEGATIVE_SUFFIX}.csv")
  return tf.data.Dataset.zip((_lines(file), _lines(beside))).map(lambda *pair: tf.stack(pair))


def _messages(file: tf.Tensor) -> tf.data.Dataset:
  return tf.data.TFRecordDataset(file, buffer_size=_READ_BYTES)


CRITEO = Format(
    "criteo", Reader(_lines, criteo.parse_csv), Reader(_messages, criteo.parse_examples))
TAOBAO = Format(
    "taobao", Reader(_lines, taobao.parse_csv), Reader(_messages, taobao.parse_examples))
TAOBAO_WITH_NEGATIVES = Format(
    "taobao with negatives", Reader(_lines_with_negatives, taobao.parse_csv),
    Reader(_messages, taobao.parse_examples))
