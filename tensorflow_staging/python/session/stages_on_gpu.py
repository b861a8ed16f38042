# SPDX-License-Identifier: Apache-2.0
"""Says that the stages of a session may compute on the GPU of the step, where they slow it down."""

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session as session_lib

from tensorflow_staging.python.smart_stage import optimizer_options

NOTE = (
    "The stages of SmartStage are placed with the step, so their ops may compute on its GPU, and their records are"
    " copied there only in the step. config.graph_options.optimizer_options.stage_subgraph_on_cpu = True computes them"
    " on the CPU and copies records ahead of the step, which was faster for most models that were measured; see"
    " docs/gpu.md.")


def note(session: session_lib.BaseSession, config: config_pb2.ConfigProto, has_stages: bool) -> str:
  """Returns what the program should know of where its stages compute, or an empty string.

  Args:
    session: A session.
    config: Its configuration.
    has_stages: Whether the session has stages.
  """
  options = config.graph_options.optimizer_options
  # A stage on a stream of its own is meant for the GPU. What devices a server has takes a call of it.
  if (not has_stages or not optimizer_options.makes_stages(config) or options.stage_subgraph_on_cpu or
      options.smart_stage_options.stage_subgraph_stream_id or session.sess_str):
    return ""
  return NOTE if any(device.device_type == "GPU" for device in session.list_devices()) else ""
