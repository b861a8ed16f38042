# SPDX-License-Identifier: Apache-2.0
"""DeepRec's import paths work, and each module can be the first one that a program imports."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util


def test_prefetch_module():
  from tensorflow.python.ops import prefetch

  assert prefetch.staged is tf.staged
  assert prefetch.prefetch_join is tf.prefetch_join
  assert prefetch.make_prefetch_hook is tf.make_prefetch_hook


def test_smart_stage_options_module():
  from tensorflow.python.training import smart_stage_options

  assert smart_stage_options.SmartStageOptions is tf.SmartStageOptions


def test_messages():
  from tensorflow.core.protobuf import config_pb2
  from tensorflow.core.protobuf import rewriter_config_pb2

  assert config_pb2.StageSubGraphThreadPoolOptionsProto(inter_op_threads_num=1)
  assert config_pb2.SmartStageOptions(capacity=1)
  assert config_pb2.PrefetchRunnerOptions(cancel_op="cancel")
  assert rewriter_config_pb2.MultiStreamOptions(multi_stream_num=2)
  assert rewriter_config_pb2.FULL_GRAPH_PARTITION == 3


@pytest.mark.parametrize(
    "module", [
        "tensorflow_staging",
        "tensorflow_staging.python.stages.staged",
        "tensorflow_staging.python.session.prefetch_hook",
        "tensorflow_staging.python.smart_stage.smart_stage_options",
        "tensorflow.python.ops.prefetch",
        "tensorflow.python.training.smart_stage_options",
    ])
def test_each_module_may_be_imported_first(tmp_path, module):
  output = test_util.run_program(
      f"""
      import {module}
      import tensorflow as tf
      print(tf.staged.__module__)
      """, tmp_path)
  assert output == "tensorflow_staging.python.stages.staged\n"
