# SPDX-License-Identifier: Apache-2.0
"""Each way to read gives all rows, in an order that the seed determines."""

import collections
import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from modelzoo import data
from modelzoo.base import dataset
from modelzoo.base import formats
from modelzoo.base.dataset import Input

_WAYS = pytest.mark.parametrize("tf_data", ["plain", "deeprec", "best"])
_ROWS = 120
_BATCH = 8


@pytest.fixture(scope="module", params=["csv", "tfrecord"])
def files(request, tmp_path_factory) -> Input:
  """Returns the setting that reads files of so many rows in all, three of one format."""
  folder = tmp_path_factory.mktemp(request.param)
  data.write(folder, data.Data(dataset="criteo", format=request.param, rows=_ROWS, eval_rows=30, files=3))
  return Input(data=str(folder), batch_size=_BATCH, shuffle=50)


def _rows(settings: Input, batches: int | None = None, training: bool = True, **options) -> list[tuple]:
  """Returns the rows of so many batches, or of all: two categories, a number and the label."""
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    features, labels = dataset.batches(
        settings, formats.CRITEO, lambda parsed: parsed | {"twice": 2 * parsed["I1"]}, training=training, **options)
    record = [features["C1"], features["C3"], features["twice"], labels]
    rows = []
    while batches is None or len(rows) < batches * settings.batch_size:
      try:
        rows += zip(*(values.tolist() for values in session.run(record)), strict=True)
      except tf.errors.OutOfRangeError:
        break
  return rows


def _all_rows(settings: Input) -> list[tuple]:
  return _rows(dataclasses.replace(settings, tf_data="plain", shuffle=0), _ROWS // _BATCH)


@_WAYS
def test_every_row_comes_once_in_an_epoch(files, tf_data):
  # Each of three streams reads 40 rows: five batches.
  rows = _rows(dataclasses.replace(files, tf_data=tf_data), _ROWS // _BATCH)
  assert collections.Counter(rows) == collections.Counter(_all_rows(files))


@_WAYS
def test_rows_come_again_and_again(files, tf_data):
  rows = _rows(dataclasses.replace(files, tf_data=tf_data), 3 * _ROWS // _BATCH)
  assert collections.Counter(rows) == collections.Counter(3 * _all_rows(files))


@_WAYS
def test_the_seed_determines_the_order(files, tf_data):
  settings = dataclasses.replace(files, tf_data=tf_data)
  first, again, other = (_rows(settings, 6, seed=seed) for seed in (1, 1, 2))
  assert again == first
  assert other != first


@_WAYS
def test_without_shuffling_the_files_keep_their_order(files, tf_data):
  rows = _rows(dataclasses.replace(files, tf_data=tf_data, shuffle=0), _ROWS // _BATCH)
  expected = _all_rows(files)
  if tf_data == "best":
    # A batch of each file by turns.
    by_file = np.arange(_ROWS).reshape(3, -1, _BATCH).transpose(1, 0, 2).ravel()
    expected = [expected[index] for index in by_file]
  assert rows == expected


@_WAYS
def test_shards_divide_the_rows(files, tf_data):
  settings = dataclasses.replace(files, tf_data=tf_data, batch_size=4)
  shards = [_rows(settings, _ROWS // 8, shard=shard, shards=2) for shard in range(2)]
  assert collections.Counter(shards[0] + shards[1]) == collections.Counter(_all_rows(files))


@_WAYS
def test_an_evaluation_reads_each_row_once_in_its_order(files, tf_data):
  rows = _rows(dataclasses.replace(files, tf_data=tf_data), training=False)
  assert len(rows) == 30
  assert rows == _rows(dataclasses.replace(files, tf_data="plain"), training=False)


def test_tf_data_does_what_its_setting_says(files):
  found = {}
  for tf_data in ("plain", "deeprec", "best"):
    with tf.Graph().as_default():
      settings = dataclasses.replace(files, tf_data=tf_data)
      prepare = lambda parsed: {"twice": 2 * parsed["I1"]}
      element = dataset.pipeline(settings, formats.CRITEO, prepare, training=True).dataset.element_spec
      found[tf_data] = [spec.dtype for spec in tf.nest.flatten(element)]
  assert found["plain"] == [tf.string]
  assert found["deeprec"].count(tf.string) == 26
  assert found["best"] == [tf.float32, tf.float32]
