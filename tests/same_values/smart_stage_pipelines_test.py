# SPDX-License-Identifier: Apache-2.0
"""SmartStage stages every kind of input pipeline, and does not change its records."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import smart_stage_runs
from tensorflow_staging.python.testing import test_util

_ROWS = [f"{i},word{i % 4} gray" for i in range(24)]


def _parse(line):
  number, text = tf.io.decode_csv(line, record_defaults=[[0.0], [""]])
  return {"number": number, "text": text}


def _lines() -> tf.data.Dataset:
  return tf.data.Dataset.from_tensor_slices(_ROWS)


@pytest.fixture(name="files")
def _files(tmp_path) -> list[str]:
  """Writes the rows to three files of records."""
  names = [str(tmp_path / f"part-{i}") for i in range(3)]
  for i, name in enumerate(names):
    with tf.io.TFRecordWriter(name) as writer:
      for row in _ROWS[i::3]:
        writer.write(row.encode())
  return names


def _step(record: dict[str, tf.Tensor]) -> list[tf.Tensor]:
  """Builds a step: operations on the features, then variables, one of which counts the steps."""
  bucket = tf.raw_ops.Bucketize(input=record["number"], boundaries=[5.0, 10.0, 15.0])
  key = tf.strings.join([record["text"], tf.as_string(bucket)], separator="_x_")
  ids = tf.string_to_hash_bucket_fast(key, 50)
  table = tf.get_variable("table", initializer=np.arange(100, dtype=np.float32).reshape(50, 2))
  embedded = tf.nn.embedding_lookup(table, ids)
  with tf.control_dependencies([embedded]):
    train = tf.assign_add(tf.train.get_or_create_global_step(), 1)
  return [ids + 0 * tf.cast(train, tf.int64), embedded]


def _compare(
    make_dataset: Callable[[], tf.data.Dataset], steps: int | None = None) -> list[list[np.ndarray]]:
  """Runs a pipeline with and without SmartStage.

  Args:
    make_dataset: Creates the dataset, in the graph of each run.
    steps: How many steps to run if the data has no end.

  Returns:
    The values that the steps returned, which are the same for both runs.
  """

  def build():
    iterator = tf.data.make_initializable_iterator(make_dataset())
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return _step(iterator.get_next())

  staged, types = smart_stage_runs.records(build, True, steps)
  plain, plain_types = smart_stage_runs.records(build, False, steps)
  _assert_staged(types)
  assert "TensorBufferTake" not in plain_types
  _assert_same(staged, plain)
  return staged


def _assert_staged(types: list[str]) -> None:
  assert "TensorBufferTake" in types
  assert not {"IteratorGetNext", "StringToHashBucketFast", "StringJoin", "Bucketize"} & set(types)


def _assert_same(found: list, expected: list) -> None:
  assert len(found) == len(expected)
  for found_step, expected_step in zip(found, expected):
    assert len(found_step) == len(expected_step)
    for value, expected_value in zip(found_step, expected_step):
      np.testing.assert_array_equal(value, expected_value, strict=True)


def test_prefetch():
  assert len(_compare(lambda: _lines().map(_parse).batch(4).prefetch(2))) == 6


@pytest.mark.parametrize("calls", [1, 2, tf.data.AUTOTUNE])
def test_a_parallel_map(calls):
  assert len(_compare(lambda: _lines().map(_parse, num_parallel_calls=calls).batch(5))) == 5


def test_batch_before_map_and_map_before_batch_give_the_same():
  vectorized = _compare(lambda: _lines().batch(4).map(_parse))
  one_by_one = _compare(lambda: _lines().map(_parse).batch(4))
  _assert_same(vectorized, one_by_one)


def test_map_and_batch():
  fused = tf.data.experimental.map_and_batch(_parse, batch_size=4, num_parallel_calls=2)
  _assert_same(_compare(lambda: _lines().apply(fused)), _compare(lambda: _lines().map(_parse).batch(4)))


def test_interleave_of_files(files):
  found = _compare(lambda: tf.data.Dataset.from_tensor_slices(files).interleave(
      tf.data.TFRecordDataset, cycle_length=3, num_parallel_calls=2, deterministic=True).map(_parse).batch(4))
  _assert_same(found, _compare(lambda: _lines().map(_parse).batch(4)))


def test_parallel_interleave_of_files(files):
  interleave = tf.data.experimental.parallel_interleave(tf.data.TFRecordDataset, cycle_length=3)
  found = _compare(lambda: tf.data.Dataset.from_tensor_slices(files).apply(interleave).map(_parse).batch(4))
  _assert_same(found, _compare(lambda: _lines().map(_parse).batch(4)))


def test_a_cache_in_memory():
  found = _compare(lambda: _lines().map(_parse).cache().repeat(2).batch(8))
  assert len(found) == 6
  _assert_same(found[:3], found[3:])


def test_a_cache_in_a_file(tmp_path):
  folders = iter([str(tmp_path / "staged"), str(tmp_path / "plain")])
  found = _compare(lambda: _lines().map(_parse).cache(next(folders)).repeat(2).batch(8))
  _assert_same(found[:3], found[3:])


def test_shuffle_before_repeat_yields_each_row_once_in_each_epoch():
  found = _compare(lambda: _lines().shuffle(24, seed=3).repeat(2).map(_parse).batch(8))
  epochs = [np.sort(np.concatenate([ids for ids, _ in epoch])) for epoch in (found[:3], found[3:])]
  assert epochs[0].tolist() == epochs[1].tolist()


def test_shuffle_after_repeat():
  assert len(_compare(lambda: _lines().repeat(2).shuffle(24, seed=3).map(_parse).batch(8))) == 6


def test_shuffle_without_end():
  assert len(_compare(lambda: _lines().repeat().shuffle(24, seed=3).map(_parse).batch(8), steps=10)) == 10


def test_shuffle_and_repeat():
  fused = tf.data.experimental.shuffle_and_repeat(24, count=2, seed=3)
  assert len(_compare(lambda: _lines().apply(fused).map(_parse).batch(8))) == 6


@pytest.fixture(name="csv")
def _csv(tmp_path) -> str:
  file = tmp_path / "rows.csv"
  file.write_text("\n".join(_ROWS) + "\n")
  return str(file)


def _read_queue(csv: str, epochs: int) -> dict[str, tf.Tensor]:
  """Reads one row of the file through queues."""
  names = tf.train.string_input_producer([csv], num_epochs=epochs, shuffle=False)
  _, line = tf.TextLineReader().read(names)
  return _parse(line)


def test_a_queue_pipeline_keeps_its_order(csv):
  def build(stage):
    row = _read_queue(csv, 2)
    batch = tf.train.batch(row, batch_size=4, capacity=20)
    return _step(tf.staged(batch) if stage else batch)

  staged, types = smart_stage_runs.records(lambda: build(True), True)
  plain, _ = smart_stage_runs.records(lambda: build(False), False)
  _assert_staged(types)
  assert len(staged) == 12
  _assert_same(staged, plain)


def test_a_shuffled_queue_pipeline_yields_each_row_once_in_each_epoch(csv):
  def build():
    row = _read_queue(csv, 2)
    batch = tf.train.shuffle_batch(
        row, batch_size=5, num_threads=2, capacity=25, min_after_dequeue=10, allow_smaller_final_batch=True)
    return _step(tf.staged(batch))

  found, types = smart_stage_runs.records(build, True)
  _assert_staged(types)
  in_order = _compare(lambda: _lines().map(_parse).repeat(2).batch(5))
  ids, expected = (np.sort(np.concatenate([ids for ids, _ in steps])) for steps in (found, in_order))
  assert ids.tolist() == expected.tolist()
  assert len(found[-1][0]) == 3


def test_placeholders_leave_nothing_to_stage():
  number, text = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.string, [None])
  fetches = _step({"number": number, "text": text})
  feeds = [
      {number: [float(i), float(i + 9)], text: [f"word{i}", "gray"]} for i in range(4)
  ]
  found = {}
  for smart_stage in (True, False):
    with tf.Session(config=smart_stage_runs.config(smart_stage)) as sess:
      sess.run(tf.global_variables_initializer())
      with tf.make_prefetch_hook().running(sess):
        results = [smart_stage_runs.run_and_look(sess, fetches, feed) for feed in feeds]
        assert not test_util.stage_threads()
    found[smart_stage] = [values for values, _ in results]
    assert all("TensorBufferTake" not in types and "StringJoin" in types for _, types in results)
  _assert_same(found[True], found[False])


def test_placeholders_beside_an_iterator_are_fed_to_the_step_of_its_record():
  record = tf.data.make_one_shot_iterator(tf.data.Dataset.range(12).batch(4)).get_next()
  ids = tf.string_to_hash_bucket_fast(tf.strings.join(["word", tf.as_string(record)]), 50)
  fed = tf.placeholder(tf.int64, [])
  fetches = [tf.identity(ids), ids * fed]
  found = {}
  for smart_stage in (True, False):
    with tf.Session(config=smart_stage_runs.config(smart_stage)) as sess:
      with tf.make_prefetch_hook().running(sess):
        results = [smart_stage_runs.run_and_look(sess, fetches, {fed: i}) for i in range(3)]
        with pytest.raises(tf.errors.OutOfRangeError):
          sess.run(fetches, {fed: 3})
    found[smart_stage] = [values for values, _ in results]
    assert all(("TensorBufferTake" in types) == smart_stage for _, types in results)
    assert all(("StringJoin" in types) == (not smart_stage) for _, types in results)
  _assert_same(found[True], found[False])


def test_a_function_that_xla_compiles():
  pair = tf.function(lambda x: (tf.cast(x, tf.float32) * 2, x + 1), jit_compile=True)
  record = tf.data.make_one_shot_iterator(tf.data.Dataset.range(12).batch(4)).get_next()
  variable = tf.get_variable("variable", initializer=1.0)
  fetches = [tf.cast(tensor, tf.float32) * variable for tensor in pair(record)]
  found = {}
  for smart_stage in (True, False):
    with tf.Session(config=smart_stage_runs.config(smart_stage)) as sess:
      sess.run(variable.initializer)
      with tf.make_prefetch_hook().running(sess):
        results = [smart_stage_runs.run_and_look(sess, fetches) for _ in range(3)]
    found[smart_stage] = [values for values, _ in results]
    assert all(("TensorBufferTake" in types) == smart_stage for _, types in results)
  _assert_same(found[True], found[False])
