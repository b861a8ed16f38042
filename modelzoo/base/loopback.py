# SPDX-License-Identifier: Apache-2.0
"""Trains a model with a parameter server and several workers, each a process on this machine."""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
from collections.abc import Sequence

from modelzoo.base import model


def train(
    name: str, arguments: Sequence[str], *, servers: int = 1, workers: int = 2, seconds: float = 600) -> list[str]:
  """Trains a model; no process is left, however it ends.

  Args:
    name: The model's name.
    arguments: The words of each worker's command line, without those of the cluster.
    servers: The number of parameter servers.
    workers: The number of workers.
    seconds: How long all processes may take.

  Returns:
    What each worker has printed on standard output.

  Raises:
    RuntimeError: A process failed; the message has the end of what it printed.
    subprocess.TimeoutExpired: The processes took longer than that.
    ValueError: There is no such model.
  """
  if name not in model.NAMES:
    raise ValueError(f"name is {name!r}, but must be one of {', '.join(model.NAMES)}")
  script = pathlib.Path(__file__).parents[1] / name / "train.py"
  ports = _free_ports(servers + workers)
  addresses = [f"localhost:{port}" for port in ports]
  cluster = [f"--ps={','.join(addresses[:servers])}", f"--workers={','.join(addresses[servers:])}"]
  # A process on this machine is reached without a proxy.
  environment = os.environ | {"TF_API_VERSION": "1", "no_proxy": "localhost", "grpc_proxy": ""}
  processes: list[subprocess.Popen] = []
  try:
    for job, count in (("ps", servers), ("worker", workers)):
      for task in range(count):
        command = [sys.executable, str(script), *cluster, f"--job={job}", f"--task={task}"]
        command += arguments if job == "worker" else []
        processes.append(
            subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    # The parameter servers end after the workers.
    outputs = [process.communicate(timeout=seconds)[0] for process in reversed(processes)][::-1]
  finally:
    for process in processes:
      process.kill()
      process.wait()
      process.stdout.close()
  for process, output in zip(processes, outputs, strict=True):
    if process.returncode:
      raise RuntimeError(f"{' '.join(process.args)} exited with status {process.returncode}: {output[-2000:]}")
  return outputs[servers:]


def _free_ports(count: int) -> list[int]:
  with contextlib.ExitStack() as stack:
    sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
    return [each.getsockname()[1] for each in sockets]
