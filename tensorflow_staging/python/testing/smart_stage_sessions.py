# SPDX-License-Identifier: Apache-2.0
"""Sessions with SmartStage, for tests."""

import contextlib
from collections.abc import Iterator

import tensorflow.compat.v1 as tf


def smart_stage_config(**options) -> tf.ConfigProto:
  """Returns a configuration that turns SmartStage on.

  Args:
    **options: Arguments of `tf.SmartStageOptions`. Without any, `smart_stage_options` stays unset.
  """
  return tf.staging.smart_stage_config(options=tf.SmartStageOptions(**options) if options else None)


def async_embedding_config(smart_stage: bool = True, capacity: int = 1, threads_num: int = 1) -> tf.ConfigProto:
  """Returns a configuration that looks up embeddings ahead of the step.

  Args:
    smart_stage: Whether SmartStage is on, too.
    capacity: The records of the buffer of the lookups.
    threads_num: The producers of the lookups.
  """
  config = smart_stage_config() if smart_stage else tf.ConfigProto()
  optimizer_options = config.graph_options.optimizer_options
  optimizer_options.do_async_embedding = True
  optimizer_options.async_embedding_options.capacity = capacity
  optimizer_options.async_embedding_options.threads_num = threads_num
  return config


@contextlib.contextmanager
def smart_stage_session(*before, **options) -> Iterator[tf.Session]:
  """Opens a session of the default graph and starts its stages.

  Args:
    *before: Ops that run with the initialisers of variables and tables, before the stages start.
    **options: Arguments of `tf.SmartStageOptions`.

  Yields:
    The session.
  """
  with tf.Session(config=smart_stage_config(**options)) as sess:
    sess.run([tf.global_variables_initializer(), tf.tables_initializer(), *before])
    with tf.make_prefetch_hook().running(sess):
      yield sess


def staged_ops(sess: tf.Session, fetches) -> set[str]:
  """Runs a step, and returns the op types of the graphs that it executed.

  Args:
    sess: The session that runs the step.
    fetches: The fetches of the step.
  """
  metadata = tf.RunMetadata()
  sess.run(fetches, options=tf.RunOptions(output_partition_graphs=True), run_metadata=metadata)
  return {node.op for graph in metadata.partition_graphs for node in graph.node}
