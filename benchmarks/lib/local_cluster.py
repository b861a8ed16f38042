# SPDX-License-Identifier: Apache-2.0
"""A parameter server and its workers in this process, which reach each other behind a network's delay."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent import futures

import tensorflow as tf

from lib import blocks
from lib import delay_proxy
from lib import model_runs
from modelzoo.base.cluster import Cluster
from modelzoo.base.training import Run

WORKERS = 2
# How many steps a worker runs before it waits for the other.
STEPS_AT_ONCE = 4


@contextlib.contextmanager
def workers(delay: float) -> Iterator[list[tf.distribute.Server]]:
  """Starts a parameter server and the workers; yields the workers. What they send takes `delay` seconds longer."""
  # A process on this machine is reached without a proxy for the web.
  os.environ["no_proxy"] = "localhost"
  ports = _free_ports(1 + WORKERS)
  with delay_proxy.DelayProxy(ports, delay) as proxied:
    servers = []
    for own in range(len(ports)):
      addresses = [f"localhost:{(ports if task == own else proxied)[task]}" for task in range(len(ports))]
      cluster = tf.train.ClusterSpec({"ps": addresses[:1], "worker": addresses[1:]})
      job, task = ("worker", own - 1) if own else ("ps", 0)
      servers.append(tf.distribute.Server(cluster, job_name=job, task_index=task))
    yield servers[1:]


@contextlib.contextmanager
def training(run: Run, servers: Sequence[tf.distribute.Server]) -> Iterator[tuple[blocks.Step, list[tf.Session]]]:
  """Opens the sessions of the workers, and runs their stages.

  Args:
    run: The model, its input, and its stages, as if it trained alone.
    servers: The workers.

  Yields:
    A function in which each worker runs STEPS_AT_ONCE steps, at the same time, and the sessions.
  """
  with contextlib.ExitStack() as stack:
    steps, sessions = [], []
    for task, server in enumerate(servers):
      # The addresses do not matter for the graph.
      cluster = Cluster(job="worker", task=task, ps=("ps:1",), workers=("worker:1",) * WORKERS)
      worker = Run(run.model, run.hyperparameters, run.input, staging=run.staging, cluster=cluster)
      step, session = stack.enter_context(model_runs.training(worker, target=server.target))
      steps.append(step)
      sessions.append(session)
    pool = stack.enter_context(futures.ThreadPoolExecutor(WORKERS))

    def several(step: blocks.Step) -> None:
      for _ in range(STEPS_AT_ONCE):
        step()

    yield lambda: list(pool.map(several, steps)), sessions
  # Servers keep variables, iterators and buffers beyond the session, and iterators go on to tune themselves.
  tf.Session.reset(servers[0].target)


def _free_ports(count: int) -> list[int]:
  with contextlib.ExitStack() as stack:
    sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
    return [each.getsockname()[1] for each in sockets]
