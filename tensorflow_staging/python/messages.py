# SPDX-License-Identifier: Apache-2.0
"""The messages that configure stages: the fork's config.proto has them, and the plugin beside TensorFlow's own."""

from tensorflow.core.protobuf import config_pb2

from tensorflow_staging.python import api_name

if api_name.IS_PLUGIN:
  from tensorflow_staging import messages as _messages

  # The fields that TensorFlow's OptimizerOptions does not have.
  OptimizerFields = _messages.OptimizerFields
else:
  _messages = config_pb2
  OptimizerFields = config_pb2.OptimizerOptions

PrefetchRunnerOptions = _messages.PrefetchRunnerOptions
SmartStageOptions = _messages.SmartStageOptions
