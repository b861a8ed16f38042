# SPDX-License-Identifier: Apache-2.0
"""Checks that the configuration of a server has no stage thread pools."""

from tensorflow.core.protobuf import config_pb2


def check(config: config_pb2.ConfigProto) -> None:
  """Refuses stage thread pools, which a server would ignore.

  Args:
    config: The default configuration of a server's sessions.

  Raises:
    ValueError: If `config` has stage thread pools.
  """
  pools = len(config.session_stage_subgraph_thread_pool)
  if pools:
    raise ValueError(
        f"config.session_stage_subgraph_thread_pool of a server must be empty, got {pools} entries: stage"
        " thread pools are not supported in distributed sessions.")
