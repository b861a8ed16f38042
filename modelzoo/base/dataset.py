# SPDX-License-Identifier: Apache-2.0
"""Reads the files of a folder as batches of features."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Callable
from typing import Any
from typing import NamedTuple

import tensorflow as tf

from modelzoo.base import formats
from modelzoo.base.settings import Settings
from modelzoo.base.settings import setting

# Each takes a thread, which on a Xeon read, shuffled and batched 2,048 rows of Criteo's format in 6 ms.
_MOST_STREAMS = 16
# As in the scripts of DeepRec's models.
_DEEPREC_PREFETCHED = 2
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
      " prepares; deeprec also parses them, in parallel, and prefetches, as the scripts of DeepRec's models do; best"
      " reads files in parallel, parses and prepares batches in parallel, and prefetches",
      choices=("plain", "deeprec", "best"))
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


class Pipeline(NamedTuple):
  """What tf.data computes of a batch, and what the graph does."""

  dataset: tf.data.Dataset
  # Returns the features and labels, given an element of the dataset.
  finish: Callable[[Any], tuple[Features, tf.Tensor]]


def batches(
    settings: Input, format_: formats.Format, prepare: Prepare, *, training: bool, seed: int = 0, shard: int = 0,
    shards: int = 1) -> tuple[Features, tf.Tensor]:
  """Returns the features and labels of the next batch; arguments and errors are those of `pipeline`."""
  dataset, finish = pipeline(settings, format_, prepare, training=training, seed=seed, shard=shard, shards=shards)
  return finish(tf.data.make_one_shot_iterator(dataset).get_next())


def pipeline(
    settings: Input, format_: formats.Format, prepare: Prepare, *, training: bool, seed: int = 0, shard: int = 0,
    shards: int = 1) -> Pipeline:
  """Returns how the features and labels of batches are computed.

  Args:
    settings: The files, and how they are read.
    format_: The columns of the files.
    prepare: Computes what the model uses of the parsed features.
    training: Whether to read the files for training, in random order and again and again, and batches of one size;
      otherwise those for evaluation are read once.
    seed: Determines the random order, which is the same in each run.
    shard: Which of the shards of the rows is read.
    shards: How many shards there are.

  Raises:
    ValueError: The folder has no such files.
  """
  files = files_of(settings, training)
  reader = formats.reader(format_, files)
  streams = min(len(files), _MOST_STREAMS) if settings.tf_data == "best" and training else 1

  def stream(index: int | tf.Tensor) -> tf.data.Dataset:
    """Returns batches of the records of one of so many parts of the files."""
    records = tf.data.Dataset.from_tensor_slices(files).shard(streams, index).flat_map(reader.open)
    if shards > 1:
      records = records.shard(shards, shard)
    if training:
      if settings.shuffle:
        records = records.shuffle(max(1, settings.shuffle // streams), seed=seed)
      records = records.repeat()
    return records.batch(settings.batch_size, drop_remainder=training)

  def parse_and_prepare(records: tf.Tensor) -> tuple[Features, tf.Tensor]:
    features, labels = reader.parse(records)
    return prepare(features), labels

  # Batches, rather than rows, go from one thread to the other: handing over takes longer than reading a row.
  dataset = stream(0) if streams == 1 else tf.data.Dataset.range(streams).interleave(
      stream, cycle_length=streams, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
  if settings.tf_data == "plain":
    return Pipeline(dataset, parse_and_prepare)
  if settings.tf_data == "deeprec":
    dataset = dataset.map(reader.parse, num_parallel_calls=os.cpu_count()).prefetch(_DEEPREC_PREFETCHED)
    return Pipeline(dataset, lambda element: (prepare(element[0]), element[1]))
  dataset = dataset.map(parse_and_prepare, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
  return Pipeline(dataset.prefetch(tf.data.AUTOTUNE), lambda element: element)
