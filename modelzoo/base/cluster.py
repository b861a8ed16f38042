# SPDX-License-Identifier: Apache-2.0
"""Training by several processes: parameter servers keep the variables, workers compute the steps."""

from __future__ import annotations

import contextlib
import dataclasses

import tensorflow as tf

from modelzoo.base.settings import Settings
from modelzoo.base.settings import setting


@dataclasses.dataclass(frozen=True)
class Cluster(Settings):
  """The processes that train, and which of them this one is."""

  job: str = setting("local", "what this process is: the only one, a parameter server, or a worker",
                     choices=("local", "ps", "worker"))
  task: int = setting(0, "which of its job's tasks this process is; worker 0 saves checkpoints and evaluates", least=0)
  ps: tuple[str, ...] = setting((), "the addresses of the parameter servers, such as host:2220,other:2220")
  workers: tuple[str, ...] = setting((), "the addresses of the workers")

  def __post_init__(self):
    """Checks the values as `Settings` does, and that the task has an address.

    Raises:
      TypeError: A value has a wrong type.
      ValueError: A value is not allowed.
    """
    super().__post_init__()
    if self.job == "local":
      if self.ps or self.workers:
        raise ValueError("ps or workers is given, but job is local; it must be ps or worker")
      return
    for name in ("ps", "workers"):
      if not getattr(self, name):
        raise ValueError(f"{name} is empty, but job is {self.job}; it must list addresses")
    count = len(self.ps if self.job == "ps" else self.workers)
    if self.task >= count:
      raise ValueError(f"task is {self.task}, but must be less than {count}, the number of addresses of {self.job}")

  @property
  def is_chief(self) -> bool:
    """Whether this process saves checkpoints and evaluates."""
    return self.job == "local" or self.job == "worker" and self.task == 0

  @property
  def shards(self) -> int:
    """The number of parts of the data, of which each worker reads one."""
    return max(1, len(self.workers))

  def server(self, config: tf.ConfigProto) -> tf.distribute.Server | None:
    """Starts the server of this process, unless it trains alone."""
    if self.job == "local":
      return None
    return tf.train.Server(self._spec(), job_name=self.job, task_index=self.task, config=config)

  def device(self) -> contextlib.AbstractContextManager:
    """Opens the scope in which variables are on the parameter servers, and all else on this worker."""
    if self.job == "local":
      return contextlib.nullcontext()
    return tf.device(
        tf.train.replica_device_setter(cluster=self._spec(), worker_device=f"/job:worker/task:{self.task}"))

  def configure(self, config: tf.ConfigProto) -> None:
    """Lets a worker's session wait for the parameter servers only."""
    if self.job == "worker":
      config.device_filters.extend(["/job:ps", f"/job:worker/task:{self.task}"])

  def hooks(self) -> list[tf.train.SessionRunHook]:
    """Returns the hooks of a worker's session."""
    return [_Goodbye(self)] if self.job == "worker" else []

  def serve(self, server: tf.distribute.Server) -> None:
    """Runs a parameter server until every worker has ended its training."""
    with tf.Graph().as_default():
      goodbye = self.goodbyes(self.task).dequeue()
      config = tf.ConfigProto(device_filters=[f"/job:ps/task:{self.task}"])
      with tf.Session(server.target, config=config) as session:
        for _ in self.workers:
          session.run(goodbye)

  def goodbyes(self, task: int) -> tf.queue.QueueBase:
    """Returns the queue, on a parameter server, into which each worker puts one entry when it has ended."""
    with tf.device(f"/job:ps/task:{task}"):
      return tf.queue.FIFOQueue(len(self.workers), [tf.int32], [[]], shared_name="goodbyes")

  def _spec(self) -> tf.train.ClusterSpec:
    return tf.train.ClusterSpec({"ps": list(self.ps), "worker": list(self.workers)})


class _Goodbye(tf.compat.v1.train.SessionRunHook):
  """Tells the parameter servers that this worker has ended its training."""

  def __init__(self, cluster: Cluster):
    self._cluster = cluster
    self._goodbye = None

  def begin(self) -> None:
    self._goodbye = tf.group(*(self._cluster.goodbyes(task).enqueue(0) for task in range(len(self._cluster.ps))))

  def end(self, session: tf.Session) -> None:
    session.run(self._goodbye)
