# SPDX-License-Identifier: Apache-2.0
"""A region on one stream of a GPU, and the step on another."""

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2

_STREAMS = 2
_STEPS = 300
_SIZE = 256


def _config() -> tf.ConfigProto:
  config = tf.ConfigProto()
  rewriter = config.graph_options.rewrite_options
  rewriter.use_multi_stream = rewriter_config_pb2.RewriterConfig.ON
  rewriter.multi_stream_opts.multi_stream_num = _STREAMS
  return config


def test_records_go_from_one_stream_to_another(device):
  gpus = len(tf.config.experimental.list_physical_devices("GPU"))
  other = f"/gpu:{gpus}" if "gpu" in device else device
  number = tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(10_000)).get_next()
  with tf.device("/cpu:0"):
    value = tf.cast(number % 7, tf.float32)
  with tf.device(other):
    # Long enough for a step that reads a record too early to see other values.
    product = tf.fill([_SIZE, _SIZE], value)
    for _ in range(20):
      product = tf.matmul(product, tf.fill([_SIZE, _SIZE], 1.0 / _SIZE))
  record = tf.staged(product, capacity=3)
  with tf.device(device):
    values = tf.reduce_max(record), tf.reduce_min(record)
  with tf.Session(config=_config()) as sess:
    if "gpu" in device:
      found = [found.name.rpartition("/device:")[2] for found in sess.list_devices() if found.device_type == "GPU"]
      assert found == [f"GPU:{index}" for index in range(gpus * _STREAMS)]
    with tf.make_prefetch_hook().running(sess):
      for step in range(_STEPS):
        np.testing.assert_array_equal(sess.run(values), [step % 7] * 2, err_msg=f"step {step}")
