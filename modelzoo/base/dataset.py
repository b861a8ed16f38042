# SPDX-License-Identifier: Apache-2.0
"""Reads the files of a folder as batches of features."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from modelzoo.base import formats
from modelzoo.base.settings import Settings
from modelzoo.base.settings import setting

_FILES_READ_AT_ONCE = 4
_TRAIN = "train"
_EVAL = "eval"

Features = dict[str, Any]
# Computes what a model uses of the parsed features, without any variable.
Prepare = Callable[[Features], Features]


@dataclasses.dataclass(frozen=True)
class Input(Settings):
  """The files, and how they are read."""

  data: str = setting("", "the folder of the files, as modelzoo/data.py writes them")
  batch_size: int = setting(512, "rows of a step", least=1)
  tf_data: str = setting(
      "plain", "what tf.data does: plain only reads batches of lines or messages, which the graph then parses and"
      " prepares; best also parses and prepares them, in parallel, and prefetches", choices=("plain", "best"))
  shuffle: int = setting(10_000, "rows that wait to be drawn at random; 0 keeps the order of the files", least=0)


def files_of(settings: Input, training: bool) -> list[str]:
  """Returns the files for training or evaluation, in their order.

  Raises:
    ValueError: There are none, or of both formats.
  """
  stem = _TRAIN if training else _EVAL
  if not settings.data:
    raise ValueError("data is empty, but must name a folder of files; modelzoo/data.py writes some")
  folder = pathlib.Path(settings.data)
  found = [path for path in sorted(folder.glob(f"{stem}*")) if not path.stem.endswith(formats.NEGATIVE_SUFFIX)]
  by_format = {kind: [str(path) for path in found if path.suffix == f".{kind}"] for kind in formats.KINDS}
  kinds = [kind for kind, paths in by_format.items() if paths]
  if len(kinds) != 1:
    what = " and ".join(f"{stem}*.{kind}" for kind in kinds) or "neither"
    raise ValueError(
        f"data is {settings.data!r}, but must be a folder with files {stem}*.csv or {stem}*.tfrecord; it has {what}")
  return by_format[kinds[0]]


def batches(
    settings: Input, format_: formats.Format, prepare: Prepare, *, training: bool, seed: int = 0, shard: int = 0,
    shards: int = 1) -> tuple[Features, tf.Tensor]:
  """Returns the features and labels of the next batch.

  Args:
    settings: The files, and how they are read.
    format_: The columns of the files.
    prepare: Computes what the model uses of the parsed features.
    training: Whether to read the files for training, in random order and again and again, and batches of one size;
      otherwise those for evaluation are read once.
    seed: Determines the random order.
    shard: Which of the shards of the rows is read.
    shards: How many shards there are.

  Raises:
    ValueError: The folder has no such files.
  """
  files = files_of(settings, training)
  reader = formats.reader(format_, files)
  best = settings.tf_data == "best"

  def parse(records: tf.Tensor) -> tuple[Features, tf.Tensor]:
    features, labels = reader.parse(records)
    return prepare(features), labels

  dataset = tf.data.Dataset.from_tensor_slices(files)
  if best and training:
    dataset = dataset.interleave(
        reader.open, cycle_length=_FILES_READ_AT_ONCE, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
  else:
    dataset = dataset.flat_map(reader.open)
  if shards > 1:
    dataset = dataset.shard(shards, shard)
  if training:
    if settings.shuffle:
      dataset = dataset.shuffle(settings.shuffle, seed=seed)
    dataset = dataset.repeat()
  dataset = dataset.batch(settings.batch_size, drop_remainder=training)
  if best:
    dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
  element = tf.data.make_one_shot_iterator(dataset).get_next()
  return element if best else parse(element)
