# SPDX-License-Identifier: Apache-2.0
"""A session configuration that sets every new field, with values that a session accepts together."""

import os

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.core.protobuf import rewriter_config_pb2

# The fork numbers its fields from here.
FIRST_NUMBER = 10001
# A core that this process may use; a session refuses others.
CORE = max(os.sched_getaffinity(0))


def config() -> config_pb2.ConfigProto:
  """Returns a configuration for the default graph; it gives every new field a value other than the default."""
  result = config_pb2.ConfigProto()
  for index in (1, 2):
    result.session_stage_subgraph_thread_pool.add(
        inter_op_threads_num=10 + index, intra_op_threads_num=20 + index, global_name=f"pool_{index}",
        cpu_affinity=[CORE])
  optimizer = result.graph_options.optimizer_options
  optimizer.do_smart_stage = True
  optimizer.stage_subgraph_on_cpu = True
  optimizer.stage_multi_stream = True
  optimizer.smart_stage_options.CopyFrom(_smart_stage_options())
  optimizer.do_smart_stage_gpu = True
  optimizer.do_async_embedding = True
  lookups = optimizer.async_embedding_options
  lookups.threads_num = 41
  lookups.capacity = 42
  lookups.use_stage_subgraph_thread_pool = True
  lookups.stage_subgraph_thread_pool_id = 1
  rewriter = result.graph_options.rewrite_options
  rewriter.use_multi_stream = rewriter_config_pb2.RewriterConfig.ON
  rewriter.multi_stream_opts.multi_stream_num = 37
  rewriter.multi_stream_opts.partition_policy = rewriter_config_pb2.USER_DEFINED_PARTITION
  rewriter.multi_stream_opts.memory_shares.extend(range(1, 38))
  return result


def _smart_stage_options() -> config_pb2.SmartStageOptions:
  options = tf.SmartStageOptions(
      capacity=31, num_threads=32, num_clients=33, timeout_millis=35, stage_subgraph_stream_id=36,
      closed_exception_types=(tf.errors.OUT_OF_RANGE, tf.errors.ABORTED),
      ignored_exception_types=(tf.errors.DATA_LOSS,),
      use_stage_subgraph_thread_pool=True, stage_subgraph_thread_pool_id=1,
      graph=tf.compat.v1.get_default_graph(), name="ahead", carry_elements=False, capacity_bytes=2**40,
      device_capacity_bytes=2**41)
  runner = options.runner_options
  runner.fetch_ops.extend(["put_1", "put_2"])
  runner.cancel_op = "cancel"
  runner.resume_op = "resume"
  runner.close_op = "close"
  runner.named_feed_input_tensors["fed:0"] = "source:0"
  runner.error_code_tensor = "code:0"
  runner.error_message_tensor = "message:0"
  runner.discard_tensor = "discard:0"
  runner.stats_tensor = "stats:0"
  runner.tune_threads = True
  runner.any_order = True
  return options
