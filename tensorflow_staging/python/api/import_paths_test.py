# SPDX-License-Identifier: Apache-2.0
"""DeepRec's import paths work, and each module can be the first one that a program imports."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import parallel_programs


def test_prefetch_module():
  from tensorflow.python.ops import prefetch

  assert prefetch.staged is tf.staged
  assert prefetch.prefetch_join is tf.prefetch_join
  assert prefetch.make_prefetch_hook is tf.make_prefetch_hook


def test_prefetch_runner_hook_module():
  from tensorflow.python.ops import prefetch_runner_hook

  assert type(tf.make_prefetch_hook()) is prefetch_runner_hook.PrefetchRunnerHook
  record = tf.staged(tf.constant(1))
  with tf.train.MonitoredTrainingSession(hooks=[prefetch_runner_hook.PrefetchRunnerHook()]) as sess:
    assert sess.run(record) == 1


def test_gen_tensor_buffer_ops_module():
  from tensorflow.python.ops import gen_tensor_buffer_ops

  buffer = {"shared_name": "mine", "shared_capacity": 2}
  number = tf.placeholder(tf.int64, [])
  put = gen_tensor_buffer_ops.tensor_buffer_put([number, "text"], timeout_millis=60000, **buffer)
  take = gen_tensor_buffer_ops.tensor_buffer_take(dtypes=[tf.int64, tf.string], shared_threads=2, **buffer)
  size = gen_tensor_buffer_ops.tensor_buffer_size(**buffer)
  cancel = gen_tensor_buffer_ops.tensor_buffer_cancel(**buffer)
  resume = gen_tensor_buffer_ops.tensor_buffer_cancel(is_cancelled=False, **buffer)
  close = gen_tensor_buffer_ops.tensor_buffer_close(**buffer)
  assert size.dtype == tf.int32
  with tf.Session() as sess:
    sess.run(put, {number: 0})
    sess.run(put, {number: 1})
    assert sess.run(size) == 2
    assert sess.run(take) == [0, b"text"]
    sess.run(cancel)
    with pytest.raises(tf.errors.CancelledError):
      sess.run(put, {number: 2})
    sess.run(resume)
    sess.run(put, {number: 3})
    sess.run(close)
    assert [sess.run(take)[0], sess.run(take)[0]] == [1, 3]
    with pytest.raises(tf.errors.OutOfRangeError):
      sess.run(take)


@pytest.mark.parametrize(
    "function,argument,value,error",
    [("tensor_buffer_cancel", "is_cancelled", 0, TypeError), ("tensor_buffer_put", "shared_capacity", 0, ValueError),
     ("tensor_buffer_put", "timeout_millis", -1, ValueError), ("tensor_buffer_close", "shared_capacity", 0, ValueError),
     ("tensor_buffer_take", "shared_threads", 0, ValueError), ("tensor_buffer_take", "shared_threads", "2", TypeError)])
def test_bad_arguments_of_gen_tensor_buffer_ops_are_named(function, argument, value, error):
  from tensorflow.python.ops import gen_tensor_buffer_ops

  inputs = {"tensor_buffer_put": [[1]], "tensor_buffer_take": [[tf.int32]]}.get(function, [])
  with pytest.raises(error, match=f"{argument} must be .* got"):
    getattr(gen_tensor_buffer_ops, function)(*inputs, shared_name="mine", **{argument: value})


def test_smart_stage_options_module():
  from tensorflow.python.training import smart_stage_options

  assert smart_stage_options.SmartStageOptions is tf.SmartStageOptions


def test_a_record_may_be_empty():
  from tensorflow.python.ops import gen_tensor_buffer_ops

  buffer = {"shared_name": "empty", "shared_capacity": 2}
  put = gen_tensor_buffer_ops.tensor_buffer_put([], timeout_millis=60000, **buffer)
  take = gen_tensor_buffer_ops.tensor_buffer_take([], **buffer)
  size = gen_tensor_buffer_ops.tensor_buffer_size(**buffer)
  with tf.Session() as sess:
    sess.run(put)
    sess.run(put)
    assert sess.run(size) == 2
    sess.run(take)
    assert sess.run(size) == 1


def test_async_embedding_stage_module():
  from tensorflow.python.training import async_embedding_stage

  assert async_embedding_stage.async_embedding_mark_node is tf.async_embedding_mark_node
  assert async_embedding_stage.AsyncEmbeddingStage(threads_num=2, capacity=3, checkpoint_dir="logs")


def test_messages():
  from tensorflow.core.protobuf import config_pb2
  from tensorflow.core.protobuf import rewriter_config_pb2

  assert config_pb2.StageSubGraphThreadPoolOptionsProto(inter_op_threads_num=1)
  assert config_pb2.SmartStageOptions(capacity=1)
  assert config_pb2.PrefetchRunnerOptions(cancel_op="cancel")
  assert rewriter_config_pb2.MultiStreamOptions(multi_stream_num=2)
  assert rewriter_config_pb2.FULL_GRAPH_PARTITION == 3


_MODULES = [
    "tensorflow_staging",
    "tensorflow_staging.python.stages.staged",
    "tensorflow_staging.python.session.prefetch_hook",
    "tensorflow_staging.python.smart_stage.smart_stage_options",
    "tensorflow.python.ops.gen_tensor_buffer_ops",
    "tensorflow.python.ops.prefetch",
    "tensorflow.python.ops.prefetch_runner_hook",
    "tensorflow.python.training.async_embedding_stage",
    "tensorflow.python.training.smart_stage_options",
]


@pytest.fixture(scope="module")
def output_of(tmp_path_factory):
  sources = {
      (module, "1"): f"""
          import {module}
          import tensorflow as tf
          print(tf.staged.__module__)
          """ for module in _MODULES
  }
  with parallel_programs.running_ahead(sources, tmp_path_factory) as output:
    yield output


@pytest.mark.parametrize("module", _MODULES)
def test_each_module_may_be_imported_first(output_of, module):
  assert output_of(module, "1") == "tensorflow_staging.python.stages.staged\n"
