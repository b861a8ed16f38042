# SPDX-License-Identifier: Apache-2.0
"""Runs of one graph with and without SmartStage, for tests that compare them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tensorflow_staging.python.testing import smart_stage_sessions
from tensorflow_staging.python.testing import test_util


def config(smart_stage: bool) -> tf.ConfigProto:
  """Returns a single-threaded configuration, with or without SmartStage."""
  result = smart_stage_sessions.smart_stage_config() if smart_stage else tf.ConfigProto()
  result.intra_op_parallelism_threads = result.inter_op_parallelism_threads = 1
  return result


def run_and_look(sess: tf.Session, fetches: Any, feeds: dict | None = None) -> tuple[Any, list[str]]:
  """Runs a step.

  Args:
    sess: A session or monitored session.
    fetches: The fetches of the step.
    feeds: Its feeds.

  Returns:
    The fetched values, and the op types of the graph that the step ran.
  """
  metadata = tf.RunMetadata()
  options = tf.RunOptions(
      output_partition_graphs=True, timeout_in_ms=test_util.WAIT_SECONDS * 1000)
  values = sess.run(fetches, feeds, options=options, run_metadata=metadata)
  return values, [node.op for graph in metadata.partition_graphs for node in graph.node]


def records(
    build: Callable[[], Any], smart_stage: bool, steps: int | None = None,
) -> tuple[list[Any], list[str]]:
  """Builds a graph and runs steps to the end of its data.

  Args:
    build: Builds the graph and returns the fetches of a step.
    smart_stage: Whether SmartStage is on.
    steps: The number of steps after which to stop, even if the data has not ended; None sets no limit.

  Returns:
    The fetched values of each step, and the op types of the graph that the first step ran.
  """
  with tf.Graph().as_default():
    tf.set_random_seed(7)
    fetches = build()
    initializers = tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS)
    scaffold = tf.train.Scaffold(
        local_init_op=tf.group(tf.local_variables_initializer(), tf.tables_initializer(), *initializers))
    with tf.train.MonitoredTrainingSession(
        config=config(smart_stage), scaffold=scaffold, hooks=[tf.make_prefetch_hook()]) as sess:
      first, types = run_and_look(sess, fetches)
      found = [first]
      while steps is None or len(found) < steps:
        try:
          found.append(sess.run(fetches))
        except tf.errors.OutOfRangeError:
          break
  return found, types
