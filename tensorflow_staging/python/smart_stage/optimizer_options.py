# SPDX-License-Identifier: Apache-2.0
"""What the optimizer options of a session turn on."""

from typing import Any

from tensorflow.core.protobuf import config_pb2

from tensorflow_staging.python import messages


def fields_of(config: config_pb2.ConfigProto) -> Any:
  """Returns a message with the fields of stages, which TensorFlow's own class keeps as unknown ones."""
  options = config.graph_options.optimizer_options
  if isinstance(options, messages.OptimizerFields):
    return options
  return messages.OptimizerFields.FromString(options.SerializeToString())


def does_smart_stage(config: config_pb2.ConfigProto) -> bool:
  """Returns whether SmartStage is on, also by its older name for GPUs."""
  options = fields_of(config)
  return options.do_smart_stage or options.do_smart_stage_gpu


def makes_stages(config: config_pb2.ConfigProto) -> bool:
  """Returns whether a session with this configuration makes stages of its own."""
  return does_smart_stage(config) or fields_of(config).do_async_embedding
