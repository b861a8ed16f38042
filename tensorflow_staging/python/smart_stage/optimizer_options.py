# SPDX-License-Identifier: Apache-2.0
"""What the optimizer options of a session turn on."""

from tensorflow.core.protobuf import config_pb2


def does_smart_stage(config: config_pb2.ConfigProto) -> bool:
  """Returns whether SmartStage is on, also by its older name for GPUs."""
  options = config.graph_options.optimizer_options
  return options.do_smart_stage or options.do_smart_stage_gpu


def makes_stages(config: config_pb2.ConfigProto) -> bool:
  """Returns whether a session with this configuration makes stages of its own."""
  return does_smart_stage(config) or config.graph_options.optimizer_options.do_async_embedding
