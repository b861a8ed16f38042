# SPDX-License-Identifier: Apache-2.0
"""A stage on a thread pool of its own."""

import pytest
import tensorflow as tf

from tensorflow_staging.python import staging_testing


def _config(pools: int) -> tf.ConfigProto:
  config = tf.ConfigProto()
  for index in range(pools):
    config.session_stage_subgraph_thread_pool.add(
        inter_op_threads_num=1, intra_op_threads_num=1, global_name=f"stage_thread_pool_test_{index}")
  return config


@pytest.mark.parametrize("pool", [0, 1])
def test_records_arrive_from_each_pool(pool):
  record = tf.staged(
      staging_testing.dataset_record(20), num_threads=2, use_stage_subgraph_thread_pool=True,
      stage_subgraph_thread_pool_id=pool)
  with tf.Session(config=_config(pools=2)) as sess, tf.make_prefetch_hook().running(sess):
    assert sorted(staging_testing.drain(sess, record)) == list(range(20))


@pytest.mark.parametrize("pools", [0, 2])
def test_a_pool_that_the_session_lacks_is_named_to_the_step(pools):
  record = tf.staged(
      staging_testing.dataset_record(1), use_stage_subgraph_thread_pool=True, stage_subgraph_thread_pool_id=2)
  with tf.Session(config=_config(pools)) as sess, tf.make_prefetch_hook().running(sess):
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"stage thread pool 2, but the session has {pools}"):
      sess.run(record)
