# SPDX-License-Identifier: Apache-2.0
"""Checks that the configuration of a server asks for nothing that a server would ignore."""

from tensorflow.core.protobuf import config_pb2
from tensorflow.core.protobuf import rewriter_config_pb2


def check(config: config_pb2.ConfigProto) -> None:
  """Refuses stage thread pools, which only some sessions would have, and several GPU streams, which none would.

  Args:
    config: The default configuration of a server's sessions.

  Raises:
    ValueError: If `config` has stage thread pools, or turns on `use_multi_stream`.
  """
  pools = len(config.session_stage_subgraph_thread_pool)
  if pools:
    raise ValueError(
        f"config.session_stage_subgraph_thread_pool of a server must be empty, got {pools} entries: the sessions of"
        " this process would ignore them. Put them into the configuration of each session.")
  if config.graph_options.rewrite_options.use_multi_stream == rewriter_config_pb2.RewriterConfig.ON:
    raise ValueError(
        "config.graph_options.rewrite_options.use_multi_stream of a server must be off: several GPU streams are"
        " not supported in distributed sessions.")
