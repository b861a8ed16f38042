# SPDX-License-Identifier: Apache-2.0
"""Runs a model's input ahead of its step: not at all, with tf.staged, or with SmartStage."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2

from modelzoo.base.settings import Settings
from modelzoo.base.settings import setting


@dataclasses.dataclass(frozen=True)
class Staging(Settings):
  """What runs ahead of the step, and where."""

  staging: str = setting(
      "none", "what runs ahead of the step: nothing, the input with tf.staged, or what SmartStage finds",
      choices=("none", "staged", "smart"))
  capacity: int = setting(4, "records that the buffer holds; 0 lets the stage choose", least=0)
  # At most as many as a stage can have.
  threads: int = setting(
      1, "producers; one keeps the order of the records, 0 lets the stage choose", least=0, most=4096)
  pool: int = setting(0, "threads of a thread pool of the stage's own; 0 uses the session's", least=0)
  async_embedding: int = setting(
      0, "records whose embeddings are looked up ahead of the step, so that they may be a little old; 0 is none",
      least=0)
  gpu: bool = setting(False, "train on a GPU")
  stage_on_cpu: bool = setting(True, "place what runs ahead on the CPU, and copy records to the GPU at once")
  streams: int = setting(1, "streams of the GPU; of several, the stage uses stream 1, and the step stream 0", least=1)

  def __post_init__(self):
    """Checks the values as `Settings` does, and that settings of a stage or a GPU have one."""
    super().__post_init__()
    if self.staging == "none" and self.pool:
      raise ValueError(f"pool is {self.pool}, but staging is none; it must be staged or smart")
    if self.streams > 1 and not self.gpu:
      raise ValueError(f"streams is {self.streams}, but must be 1 without gpu")

  def stage(self, record: Any) -> Any:
    """Returns the tensors with which the step computes, in the structure of `record`."""
    if self.staging != "staged":
      return record
    return tf.staged(record, **self._options())

  def configure(self, config: tf.ConfigProto) -> None:
    """Sets what a session needs for its stages. The default graph must be the session's."""
    options = config.graph_options.optimizer_options
    if self.staging == "smart":
      options.do_smart_stage = True
      options.smart_stage_options.CopyFrom(tf.SmartStageOptions(**self._options()))
    if self.async_embedding:
      options.do_async_embedding = True
      options.async_embedding_options.capacity = self.async_embedding
      options.async_embedding_options.threads_num = 1
    if self.pool:
      config.session_stage_subgraph_thread_pool.add(inter_op_threads_num=self.pool, intra_op_threads_num=self.pool)
    options.stage_subgraph_on_cpu = self.stage_on_cpu
    if self.streams > 1:
      rewrite = config.graph_options.rewrite_options
      rewrite.use_multi_stream = rewriter_config_pb2.RewriterConfig.ON
      rewrite.multi_stream_opts.multi_stream_num = self.streams
      options.stage_multi_stream = self.staging != "none"
    if not self.gpu:
      config.device_count["GPU"] = 0

  def hooks(self) -> list[tf.train.SessionRunHook]:
    """Returns the hooks of a session that has stages."""
    return [] if self.staging == "none" and not self.async_embedding else [tf.make_prefetch_hook()]

  def _options(self) -> dict[str, Any]:
    return dict(
        capacity=self.capacity or tf.data.AUTOTUNE, num_threads=self.threads or tf.data.AUTOTUNE,
        use_stage_subgraph_thread_pool=self.pool > 0,
        stage_subgraph_stream_id=int(self.streams > 1))
