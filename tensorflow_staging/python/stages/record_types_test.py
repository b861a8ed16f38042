# SPDX-License-Identifier: Apache-2.0
"""Records of any type and size: strings, resources and variants, and from 4 bytes to 100 MB."""

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util


def _run_one(fetches, initializer=None):
  with tf.Session() as sess:
    if initializer is not None:
      sess.run(initializer)
    with tf.make_prefetch_hook().running(sess):
      return sess.run(fetches)


def test_strings_of_any_length():
  texts = [b"", b"\x00", "é".encode(), b"x" * 2_000_000]
  assert _run_one(tf.staged(tf.constant(texts))).tolist() == texts


def test_a_resource_still_refers_to_its_variable():
  variable = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
  handle = tf.staged(variable.handle)
  value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
  assert value.shape.as_list() == [2]
  np.testing.assert_array_equal(_run_one(value, variable.initializer), [1.0, 2.0])


def test_a_resource_still_refers_to_its_table():
  table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1], [10]), default_value=-1)
  handle = tf.staged(table.resource_handle)
  found = tf.raw_ops.LookupTableFindV2(table_handle=handle, keys=[1, 2], default_value=-1)
  assert _run_one(found, tf.tables_initializer()).tolist() == [10, -1]


def test_a_variant_keeps_its_rows():
  ragged = tf.ragged.constant([[1], [], [2, 3]])
  variant = tf.staged(ragged._to_variant())
  back = tf.RaggedTensor._from_variant(variant, tf.int32, output_ragged_rank=1)
  assert _run_one(back).to_list() == [[1], [], [2, 3]]


@pytest.mark.parametrize("count,records", [(1, 200), (2**18, 100), (25 * 2**20, 4)], ids=["4 B", "1 MB", "100 MB"])
def test_records_of_any_size(count, records):
  number = tf.cast(test_util.dataset_record(records), tf.float32)
  record = tf.staged(tf.fill([count], number), capacity=2, num_threads=2)
  ends = tf.stack([record[0], record[-1]])
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    taken = [value.tolist() for value in test_util.drain(sess, ends)]
  assert sorted(taken) == [[n, n] for n in range(records)]
