# SPDX-License-Identifier: Apache-2.0
"""Trains for a moment with a stage, with SmartStage and with a stage on a pool, and checks every record."""

import itertools
import time
from collections.abc import Callable

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.framework import errors
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib
from tensorflow.python.ops import array_ops

from tensorflow_staging.python.doctor import finding
from tensorflow_staging.python.session import prefetch_hook
from tensorflow_staging.python.smart_stage import target_nodes
from tensorflow_staging.python.stages import staged
from tensorflow_staging.python.stats import stage_stats

# A step that takes longer than this is stuck.
_STEP_MILLIS = 20_000
_ADVICE = "Run a program of your own with TF_CPP_MIN_LOG_LEVEL=0, and report what it logs."

# Makes the graph of a test and returns what a step fetches, given the record: 0, 1, 2, ...
Program = Callable[[tensor_lib.Tensor, config_pb2.ConfigProto], tensor_lib.Tensor]


def check_stage(seconds: float) -> list[finding.Finding]:
  """Trains with `tf.staged` for some seconds."""
  return train("tf.staged", _staged, seconds)


def check_smart_stage(seconds: float) -> list[finding.Finding]:
  """Trains with SmartStage for some seconds."""
  return train("SmartStage", _smart_stage, seconds)


def check_pool(seconds: float) -> list[finding.Finding]:
  """Trains with a stage on a pool of its own for some seconds."""
  return train("stage thread pool", _pool, seconds)


def train(check: str, program: Program, seconds: float) -> list[finding.Finding]:
  """Runs steps for some seconds.

  Args:
    check: The name of the check.
    program: Makes the graph.
    seconds: How long to run.
  """
  config = config_pb2.ConfigProto(operation_timeout_in_ms=_STEP_MILLIS)
  try:
    with ops.Graph().as_default():
      dataset = dataset_ops.make_one_shot_iterator(dataset_ops.Dataset.range(2**62))
      fetch = program(dataset.get_next(), config)
      with session.Session(config=config) as sess, prefetch_hook.make_prefetch_hook().running(sess):
        return _run_steps(check, sess, fetch, seconds)
  except errors.OpError as error:
    return [finding.Finding(check, f"Training fails: {error.message}", _ADVICE)]


def _run_steps(check: str, sess: session.Session, fetch: tensor_lib.Tensor, seconds: float) -> list[finding.Finding]:
  end = time.monotonic() + seconds
  for expected in itertools.count():
    found = sess.run(fetch)
    if found != expected:
      return [finding.Finding(check, f"Step {expected} got record {found}.", _ADVICE)]
    if time.monotonic() >= end:
      break
  stages = stage_stats.stats(sess)
  if not stages or stages[0].taken < expected:
    return [finding.Finding(check, f"{expected + 1} steps took no records from a stage.", _ADVICE)]
  return [finding.Finding(check, f"{expected + 1} steps in {seconds:.1f} s, each with the right record.")]


def _staged(record: tensor_lib.Tensor, config: config_pb2.ConfigProto) -> tensor_lib.Tensor:
  del config
  return array_ops.identity(staged.staged(record, capacity=4))


def _smart_stage(record: tensor_lib.Tensor, config: config_pb2.ConfigProto) -> tensor_lib.Tensor:
  config.graph_options.optimizer_options.do_smart_stage = True
  fetch = array_ops.identity(array_ops.identity(record))
  target_nodes.mark_target_node(fetch)
  return fetch


def _pool(record: tensor_lib.Tensor, config: config_pb2.ConfigProto) -> tensor_lib.Tensor:
  config.session_stage_subgraph_thread_pool.add(inter_op_threads_num=1, intra_op_threads_num=1)
  return array_ops.identity(staged.staged(record, capacity=4, use_stage_subgraph_thread_pool=True))
