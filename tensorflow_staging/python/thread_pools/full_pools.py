# SPDX-License-Identifier: Apache-2.0
"""Warns of stage thread pools that have too few threads for the stages that share them."""

import collections

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.platform import tf_logging


def warn(runners: list[bytes], config: config_pb2.ConfigProto) -> None:
  """Logs a warning for each pool that several stages share and that the producers of some of them can occupy.

  Args:
    runners: The serialized `PrefetchRunnerOptions` of a session's stages.
    config: The configuration of the session.
  """
  stages: dict[int, list[config_pb2.PrefetchRunnerOptions]] = collections.defaultdict(list)
  for runner in map(config_pb2.PrefetchRunnerOptions.FromString, runners):
    if runner.run_options.use_stage_subgraph_thread_pool:
      stages[runner.run_options.stage_subgraph_thread_pool_id].append(runner)
  for pool, options in enumerate(config.session_stage_subgraph_thread_pool):
    sharing = stages[pool]
    producers = sum(len(runner.fetch_ops) for runner in sharing)
    # 0 is TensorFlow's choice for the machine.
    if len(sharing) > 1 and 0 < options.inter_op_threads_num < producers:
      tf_logging.warning(
          "Stages %s have %d producers on stage thread pool %d, which has inter_op_threads_num=%d. While the regions of"
          " some wait there, for example in Python functions, the others cannot run. Give the pool at least %d"
          " threads, or each stage a pool of its own.", ", ".join(repr(runner.name) for runner in sharing), producers,
          pool, options.inter_op_threads_num, producers)
