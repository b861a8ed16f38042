# SPDX-License-Identifier: Apache-2.0
"""Writes rows to files, in CSV or TFRecord form.

A column is a list that has for each row an int, a bytes object, a list of bytes objects, or None.
"""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

Columns = dict[str, list]


def write_csv(
    files: Mapping[pathlib.Path, Sequence[str]], chunks: Iterable[Columns], separator: bytes, inner_separator: bytes
) -> None:
  """Writes one line for each row into each file.

  Args:
    files: The columns that each file has.
    chunks: The rows.
    separator: Stands between the columns.
    inner_separator: Stands between the entries of a list.
  """
  with contextlib.ExitStack() as stack:
    opened = [(stack.enter_context(path.open("wb")), names) for path, names in files.items()]
    for columns in chunks:
      for file, names in opened:
        texts = [_texts(columns[name], inner_separator) for name in names]
        file.writelines(separator.join(row) + b"\n" for row in zip(*texts, strict=True))


def _texts(column: list, inner_separator: bytes) -> list[bytes]:
  kind = _kind(column)
  if kind is int:
    return [b"" if value is None else b"%d" % value for value in column]
  if kind is list:
    return [inner_separator.join(value) for value in column]
  return [value or b"" for value in column]


def write_examples(path: pathlib.Path, chunks: Iterable[Columns]) -> None:
  """Writes one tf.train.Example for each row; whole numbers become floats, and None has no feature."""
  import tensorflow as tf

  def feature(value: int | bytes | list[bytes]) -> tf.train.Feature:
    if isinstance(value, int):
      return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=value if isinstance(value, list) else [value]))

  with contextlib.closing(tf.io.TFRecordWriter(str(path))) as writer:
    for columns in chunks:
      for row in zip(*columns.values(), strict=True):
        features = {name: feature(value) for name, value in zip(columns, row, strict=True) if value is not None}
        writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def _kind(column: Sequence[Any]) -> type:
  return next((type(value) for value in column if value is not None), bytes)
