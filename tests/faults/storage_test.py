# SPDX-License-Identifier: Apache-2.0
"""Files that disappear and disks that are full, under a dataset and under a checkpoint."""

import contextlib
import resource

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import stage_kinds
from tensorflow_staging.python.testing import test_util

_DISK_BYTES = 1 << 20


@contextlib.contextmanager
def _full_disk():
  """No file may be larger than `_DISK_BYTES`: for the program, writing then fails as on a full disk."""
  soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (_DISK_BYTES, hard))
  try:
    yield
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def _stage(number, smart_stage):
  step, config = stage_kinds.stage(number, smart_stage, capacity=2)
  with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      yield sess, step


@stage_kinds.BOTH
def test_a_file_that_was_removed(smart_stage, tmp_path):
  files = [tmp_path / "first", tmp_path / "second"]
  files[0].write_text("0\n1\n2\n")
  dataset = tf.data.TextLineDataset([str(file) for file in files])
  number = tf.string_to_number(tf.data.make_one_shot_iterator(dataset).get_next(), tf.int64)
  with _stage(number, smart_stage) as (sess, step):
    assert [sess.run(step) for _ in range(3)] == [0, 1, 2]
    for _ in range(2):
      with pytest.raises(tf.errors.NotFoundError, match="second"):
        sess.run(step)


@stage_kinds.BOTH
def test_a_disk_that_is_full(smart_stage, tmp_path):
  dataset = tf.data.Dataset.range(100).map(lambda n: tf.fill([_DISK_BYTES // 80], n)).cache(str(tmp_path / "cache"))
  number = tf.data.make_one_shot_iterator(dataset).get_next()[0]
  with _full_disk(), _stage(number, smart_stage) as (sess, step):
    taken = []
    with pytest.raises(tf.errors.OpError, match="cache") as error:
      while True:
        taken.append(sess.run(step))
    assert not isinstance(error.value, tf.errors.OutOfRangeError)
    assert taken == list(range(len(taken)))
    with pytest.raises(type(error.value), match="cache"):
      sess.run(step)


@stage_kinds.BOTH
def test_a_checkpoint_that_cannot_be_written_stops_no_stage(smart_stage, tmp_path):
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(10**6))
  tf.get_variable("large", initializer=tf.zeros([2 * _DISK_BYTES], tf.uint8), use_resource=True)
  step, config = stage_kinds.stage(iterator.get_next(), smart_stage, capacity=2)
  tf.staging.save_iterators(iterator)
  saver = tf.train.Saver()
  with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(step) == 0
      with _full_disk(), pytest.raises(tf.errors.OpError):
        saver.save(sess, str(tmp_path / "model"))
      assert [sess.run(step) for _ in range(9)] == list(range(1, 10))
      path = saver.save(sess, str(tmp_path / "model"))
      assert sess.run(step) == 10
      saver.restore(sess, path)
      assert sess.run(step) == 10
  test_util.assert_no_stage_thread()
