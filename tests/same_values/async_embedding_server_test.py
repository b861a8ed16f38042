# SPDX-License-Identifier: Apache-2.0
"""Lookups ahead of the step in a worker whose variables are on a parameter server."""

import contextlib
import socket

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util

_PS = "/job:ps/replica:0/task:0/device:CPU:0"
_WORKER = "/job:worker/replica:0/task:0/device:CPU:0"


@pytest.fixture(scope="module")
def cluster():
  """Returns the addresses and the target of the worker of a cluster of two tasks, both in this process."""
  with contextlib.ExitStack() as stack:
    sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
    ports = [each.getsockname()[1] for each in sockets]
  spec = {"ps": [f"localhost:{ports[0]}"], "worker": [f"localhost:{ports[1]}"]}
  servers = [tf.train.Server(tf.train.ClusterSpec(spec), job_name=job, task_index=0) for job in ("ps", "worker")]
  return spec, servers[1].target


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("parts", [0, 2], ids=["whole", "partitioned"])
def test_rows_come_ahead_from_the_server_and_updates_go_there(cluster, use_resource, parts, tmp_path):
  spec, target = cluster
  keys = np.array([[step % 8, 8 + step % 8] for step in range(40)], np.int64)
  with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:0", cluster=spec)):
    ids = tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(keys)).get_next() + 0
    with tf.variable_scope(f"model_{use_resource}_{parts}", use_resource=use_resource):
      table = tf.get_variable(
          "table", [16, 2], initializer=tf.zeros_initializer(),
          partitioner=tf.fixed_size_partitioner(parts) if parts else None)
      weight = tf.get_variable("weight", [2], initializer=tf.ones_initializer(), trainable=False)
    rows = tf.nn.embedding_lookup(table, ids)
    loss = tf.reduce_sum(rows * weight)
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(-1.0).minimize(loss, step)
  metadata = tf.RunMetadata()
  with tf.train.MonitoredTrainingSession(
      target, config=smart_stage_sessions.async_embedding_config(capacity=2), hooks=[tf.make_prefetch_hook()],
      checkpoint_dir=str(tmp_path),
      save_checkpoint_steps=10, save_summaries_steps=None, save_summaries_secs=None) as sess:
    options = tf.RunOptions(output_partition_graphs=True, timeout_in_ms=test_util.WAIT_SECONDS * 1000)
    for number in range(40):
      values, _ = sess.run([rows, train], options=options, run_metadata=metadata)
      # Each row is updated every eighth step, long before it is looked up again.
      assert (values == number // 8).all()
      if number == 0:
        nodes = [node for graph in metadata.partition_graphs for node in graph.node]
        assert not {"ResourceGather", "GatherV2"} & {node.op for node in nodes if node.device == _PS}
        assert {node.device for node in nodes if node.op == "TensorBufferTake"} == {_WORKER}
        # The step sends updates to the server and waits for no row from there.
        updates = {node.device for node in nodes if "Scatter" in node.op or "SparseApply" in node.op}
        assert updates <= {_PS}
      options = tf.RunOptions(timeout_in_ms=test_util.WAIT_SECONDS * 1000)
    with pytest.raises(tf.errors.OutOfRangeError):
      sess.run(train)
  assert tf.train.latest_checkpoint(str(tmp_path))
