# SPDX-License-Identifier: Apache-2.0
"""Every new field that Python sets reaches C++ code that is built with the wheel's headers, through a real session."""

import ctypes
import shutil

import tensorflow as tf

from tensorflow_staging.python.testing import all_fields
from tensorflow_staging.python.testing import test_util

_EXPECTED = """
pool.0.inter_op_threads_num=11
pool.0.intra_op_threads_num=21
pool.0.global_name=pool_1
pool.0.cpu_affinity.0={core}
pool.1.inter_op_threads_num=12
pool.1.intra_op_threads_num=22
pool.1.global_name=pool_2
pool.1.cpu_affinity.0={core}
do_smart_stage=1
stage_subgraph_on_cpu=1
stage_multi_stream=1
smart_stage.capacity=31
smart_stage.num_threads=32
smart_stage.num_clients=33
smart_stage.timeout_millis=35
smart_stage.stage_subgraph_stream_id=36
smart_stage.graph_key={graph_key}
smart_stage.name=ahead
smart_stage.omit_elements=1
smart_stage.capacity_bytes=1099511627776
smart_stage.device_capacity_bytes=2199023255552
runner.use_stage_subgraph_thread_pool=1
runner.stage_subgraph_thread_pool_id=1
runner.fetch_ops.0=put_1
runner.fetch_ops.1=put_2
runner.cancel_op=cancel
runner.resume_op=resume
runner.close_op=close
runner.feed.fed:0=source:0
runner.closed_exceptions.0=11
runner.closed_exceptions.1=10
runner.ignored_exceptions.0=15
runner.name=ahead
runner.error_code_tensor=code:0
runner.error_message_tensor=message:0
runner.discard_tensor=discard:0
runner.stats_tensor=stats:0
runner.tune_threads=1
runner.any_order=1
do_smart_stage_gpu=1
do_async_embedding=1
async_embedding.threads_num=41
async_embedding.capacity=42
async_embedding.use_stage_subgraph_thread_pool=1
async_embedding.stage_subgraph_thread_pool_id=1
use_multi_stream=1
multi_stream.multi_stream_num=37
multi_stream.partition_policy=1
""" + "".join(f"multi_stream.memory_shares.{stream}={stream + 1}\n" for stream in range(37))


def test_a_graph_pass_reads_every_field(tmp_path):
  shutil.copy(test_util.TESTDATA / "read_fields_pass.cc", tmp_path)
  test_util.run(
      ["g++", "-shared", "-fPIC", "-O1", "-DNDEBUG", "read_fields_pass.cc", "-o", "read_fields_pass.so",
       *tf.sysconfig.get_compile_flags(), f"-L{tf.sysconfig.get_lib()}", "-ltensorflow_cc",
       *tf.sysconfig.get_link_flags()], tmp_path)
  library = tmp_path / "read_fields_pass.so"
  tf.load_library(str(library))

  config = all_fields.config()
  # The number of streams that a GPU gets is the same in the whole process.
  config.device_count["GPU"] = 0
  with tf.Session(config=config) as sess:
    assert sess.run(tf.constant(1) + 1) == 2

  fields_read = ctypes.CDLL(str(library)).FieldsRead
  fields_read.restype = ctypes.c_char_p
  graph_key = config.graph_options.optimizer_options.smart_stage_options.graph_key
  assert fields_read().decode() == _EXPECTED.lstrip().format(
      graph_key=graph_key, core=all_fields.CORE)
