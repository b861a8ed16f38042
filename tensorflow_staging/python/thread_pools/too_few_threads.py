# SPDX-License-Identifier: Apache-2.0
"""Warns of inter-op threads that are too few for the stages that run on them."""

import collections

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.platform import tf_logging

from tensorflow_staging.python import messages


def warn(runners: list[bytes], config: config_pb2.ConfigProto) -> None:
  """Logs a warning where producers can occupy all inter-op threads that others need too.

  These are the threads of the session, which the step needs, and those of each stage thread pool that several
  stages share. Only numbers that `config` sets count: 0 is TensorFlow's choice for the machine.

  Args:
    runners: The serialized `PrefetchRunnerOptions` of a session's stages.
    config: The configuration of the session.
  """
  on_session: list[messages.PrefetchRunnerOptions] = []
  on_pool: dict[int, list[messages.PrefetchRunnerOptions]] = collections.defaultdict(list)
  for runner in map(messages.PrefetchRunnerOptions.FromString, runners):
    if runner.run_options.use_stage_subgraph_thread_pool:
      on_pool[runner.run_options.stage_subgraph_thread_pool_id].append(runner)
    else:
      on_session.append(runner)
  _warn_of_session(on_session, config.inter_op_parallelism_threads)
  for pool, options in enumerate(config.session_stage_subgraph_thread_pool):
    if len(on_pool[pool]) > 1:
      _warn_of_pool(pool, on_pool[pool], options.inter_op_threads_num)


def _warn_of_session(sharing: list[messages.PrefetchRunnerOptions], threads: int) -> None:
  producers = _num_producers(sharing)
  if 0 < threads <= producers:
    tf_logging.warning(
        "Stages %s have %d producers, and the session has inter_op_parallelism_threads=%d. While all of these threads"
        " run regions, the step waits. Set at least %d, or give the stages a stage thread pool. Stages that call Python"
        " have threads of their own, and do not count.", _names(sharing), producers, threads, producers + 1)


def _warn_of_pool(pool: int, sharing: list[messages.PrefetchRunnerOptions], threads: int) -> None:
  producers = _num_producers(sharing)
  if 0 < threads < producers:
    tf_logging.warning(
        "Stages %s have %d producers on stage thread pool %d, which has inter_op_threads_num=%d. While the regions of"
        " some wait there, for example in Python functions, the others cannot run. Give the pool at least %d threads,"
        " or each stage a pool of its own.", _names(sharing), producers, pool, threads, producers)


def _num_producers(runners: list[messages.PrefetchRunnerOptions]) -> int:
  return sum(len(runner.fetch_ops) for runner in runners)


def _names(runners: list[messages.PrefetchRunnerOptions]) -> str:
  return ", ".join(repr(runner.name) for runner in runners)
