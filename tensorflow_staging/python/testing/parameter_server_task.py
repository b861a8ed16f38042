# SPDX-License-Identifier: Apache-2.0
"""The program of one task of a test cluster; `parameter_server_cluster.Task` starts it and sends it requests.

Its only argument is the file descriptor of a connection. It receives requests there, each the name of a method of
`_Task` with its arguments, and sends back what the method returned or raised. It exits when it receives None, or when
the process that started it is gone.
"""

from __future__ import annotations

import multiprocessing.connection
import os
import queue
import sys
import threading
import time
from collections.abc import Sequence

import tensorflow as tf


class _Task:
  """The requests that a task answers; each method is one."""

  def __init__(self):
    self._server = None
    self._session = None
    self._record = None
    self._loss = None
    self._step = None

  def serve(self, cluster: dict[str, list[str]], job: str, index: int) -> str:
    """Starts the server of one task of the cluster and returns its target."""
    self._server = tf.train.Server(tf.train.ClusterSpec(cluster), job_name=job, task_index=index)
    return self._server.target

  def open(
      self,
      name: str,
      cluster: dict[str, list[str]],
      index: int,
      lines: Sequence[str],
      *,
      smart_stage: bool,
      stage: bool = True,
      chief: bool = True,
      master: str | None = None,
      plain: bool = False,
      python_feeds: bool = False,
      checkpoints: str | None = None,
      save_iterators: bool = False,
      pool: str = "",
      ignores_cancelled: bool = False,
      synchronous: int = 0,
  ) -> None:
    """Opens a session that trains a weight on the parameter server; each step adds its record to the weight.

    Args:
      name: The weight's name.
      cluster: The addresses of the cluster's tasks, by job.
      index: The worker that runs the graph.
      lines: The data: one number per record, as text.
      smart_stage: Whether SmartStage finds the stage; otherwise `tf.staged` makes it.
      stage: Whether there is a stage; otherwise the step computes its record.
      chief: Whether the session initialises the weight; otherwise another session does.
      master: The session's target; None means the server of this process.
      plain: Whether the session is a `tf.Session` instead of a monitored one.
      python_feeds: Whether a Python generator feeds the lines; otherwise a dataset yields them.
      checkpoints: The folder in which a monitored session saves its variables at every second step, if any.
      save_iterators: Whether these checkpoints hold the position in the data, too; if the session is not the
        chief's, a file beside those of the chief holds it.
      pool: The name of the thread pool, with one thread of each kind, that the stage uses; empty means none.
      ignores_cancelled: Whether the stage skips a record whose run was cancelled instead of ending.
      synchronous: How many workers give the gradients of one step; 0 means that each worker trains for itself.
    """
    with tf.Graph().as_default(), tf.container(_container(name, synchronous)):
      setter = tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)
      options = {
          "capacity": 4,
          "use_stage_subgraph_thread_pool": bool(pool),
          "ignored_exception_types": [tf.errors.CancelledError] if ignores_cancelled else None,
      }
      with tf.device(setter):
        self._record = _record(lines, options if stage and not smart_stage else None, python_feeds=python_feeds)
        if save_iterators:
          tf.staging.save_iterators()
        weight = tf.get_variable(name, initializer=0.0)
        self._loss = -weight * tf.cast(self._record, tf.float32)
        optimizer = tf.train.GradientDescentOptimizer(1.0, use_locking=True)
        if synchronous:
          optimizer = tf.train.SyncReplicasOptimizer(optimizer, synchronous, synchronous)
        self._step = optimizer.minimize(self._loss, tf.train.get_or_create_global_step())
      config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{index}"])
      if pool:
        config.session_stage_subgraph_thread_pool.add(
            inter_op_threads_num=1, intra_op_threads_num=1, global_name=pool)
      config.graph_options.optimizer_options.do_smart_stage = smart_stage
      if smart_stage:
        config.graph_options.optimizer_options.smart_stage_options.CopyFrom(tf.SmartStageOptions(**options))
      hook = tf.make_prefetch_hook()
      hooks = [hook]
      if save_iterators and not chief:
        hooks.append(tf.staging.WorkerCheckpointHook(checkpoints, index, poll_secs=0))
      if synchronous:
        # Without extra tokens, a step ends only when the weight has its update.
        hooks.append(optimizer.make_session_run_hook(chief, num_tokens=0))
      if plain:
        self._session = tf.Session(master or self._server.target, config=config)
        self._session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        hook.after_create_session(self._session)
      else:
        self._session = tf.train.MonitoredTrainingSession(
            master or self._server.target, is_chief=chief, config=config, checkpoint_dir=checkpoints,
            hooks=hooks,
            # TensorFlow's thread that applies the updates waits for gradients until the session is closed.
            stop_grace_period_secs=0 if synchronous else 120,
            save_checkpoint_steps=2, save_summaries_steps=None, save_summaries_secs=None)

  def steps(self, count: int) -> list[int]:
    """Runs `count` steps and returns the records that they took."""
    return [self._session.run([self._record, self._step])[0] for _ in range(count)]

  def step(self) -> tuple[int, float]:
    """Runs a step and returns its record and its loss."""
    record, loss, _ = self._session.run([self._record, self._loss, self._step])
    return record, loss

  def train(self) -> tuple[list[int], float]:
    """Runs steps until the session should stop, then closes it.

    Returns:
      The records of the steps, and the seconds from the end of the last step until the session was closed.
    """
    taken = []
    with self._session:
      while not self._session.should_stop():
        taken += self.steps(1)
        last = time.monotonic()
    return taken, time.monotonic() - last

  def grow(self) -> list[int]:
    """Adds a node that could run ahead to the graph of a plain session, and runs a step.

    Returns:
      The record of the step, and three times this record as the new node computed it.
    """
    with self._session.graph.as_default() as graph:
      triple = tf.identity(3 * graph.get_tensor_by_name("parse_line:0"))
      tf.train.mark_target_node([triple])
    return self._session.run([self._record, triple])

  def close(self) -> None:
    """Closes the session."""
    self._session.close()

  def devices(self) -> dict[str, str]:
    """Runs a step; returns the devices of the take, the variables and the updates in it, by op type."""
    metadata = tf.RunMetadata()
    options = tf.RunOptions(output_partition_graphs=True)
    self._session.run([self._record, self._step], options=options, run_metadata=metadata)
    nodes = [node for graph in metadata.partition_graphs for node in graph.node]
    kinds = ("TensorBufferTake", "VariableV2", "ApplyGradientDescent")
    return {node.op: node.device for node in nodes if node.op in kinds}

  def weight(self, name: str, synchronous: int = 0) -> float:
    """Returns the value of the weight in the memory of this task, which must be the parameter server."""
    with tf.Graph().as_default(), tf.container(_container(name, synchronous)), tf.device("/job:ps/task:0"):
      weight = tf.get_variable(name, [])
      with tf.Session(self._server.target, config=tf.ConfigProto(device_filters=["/job:ps"])) as sess:
        return sess.run(weight)


def _container(name: str, synchronous: int) -> str:
  """Returns the container of a weight's session."""
  # The queue of the optimizer has the same name in every session, and stays closed when a session has closed it.
  return name.replace("_", "-") if synchronous else ""


def _record(lines: Sequence[str], options: dict | None, *, python_feeds: bool) -> tf.Tensor:
  """Returns the number in the next line, which `tf.staged` computes with these options, if any.

  Without options, it is a node at which a stage of SmartStage can end.
  """
  if python_feeds:
    line = tf.placeholder(tf.string, [])
    number = tf.string_to_number(line, tf.int64, name="parse_line")
    return tf.staged(number, feed_list=[line], feed_generator=lambda: ([text] for text in lines), **options)
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.from_tensor_slices(list(lines)))
  # In this collection, a monitored session runs the initializer as part of its local initialisation, and a plain one
  # runs it with `tf.tables_initializer()`.
  tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
  number = tf.string_to_number(iterator.get_next(), tf.int64, name="parse_line")
  if options:
    return tf.staged(number, **options)
  record = tf.identity(number)
  tf.train.mark_target_node([record])
  return record


def _main() -> None:
  connection = multiprocessing.connection.Connection(int(sys.argv[1]))
  requests = queue.Queue()

  def read():
    try:
      while True:
        requests.put(connection.recv())
    except EOFError:
      os._exit(1)

  threading.Thread(target=read, daemon=True).start()
  task = _Task()
  while (request := requests.get()) is not None:
    name, arguments = request
    try:
      connection.send((getattr(task, name)(**arguments), None))
    except Exception as error:
      connection.send((None, (type(error).__name__, str(error))))


if __name__ == "__main__":
  _main()
