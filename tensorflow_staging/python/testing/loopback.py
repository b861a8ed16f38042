# SPDX-License-Identifier: Apache-2.0
"""Several processes of one program that talk to each other on this machine, as the workers of a strategy."""

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

# Below those that Linux gives to whoever asks for any port.
_PORTS = range(12_000, 32_000)


def free_ports(number: int) -> list[int]:
  """Returns so many ports that nothing uses."""
  ports = []
  for port in random.SystemRandom().sample(_PORTS, 1000):
    if len(ports) == number:
      return ports
    with socket.socket() as one, contextlib.suppress(OSError):
      one.bind(("127.0.0.1", port))
      ports.append(port)
  raise RuntimeError(f"Of 1000 ports, only these are free: {ports}.")


def worker_configs(number: int) -> list[str]:
  """Returns the `TF_CONFIG` of each of so many workers."""
  cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(number)]}
  return [json.dumps({"cluster": cluster, "task": {"type": "worker", "index": i}}) for i in range(number)]


def run_workers(
    arguments: Sequence[str], number: int, seconds: float, seconds_alone: float = 0) -> list[tuple[int, str]]:
  """Runs a Python program as so many workers.

  Args:
    arguments: The program and its arguments.
    number: How many workers.
    seconds: How long they may take. Those that run then are killed.
    seconds_alone: How long the others may run when one of them has failed.

  Returns:
    The exit status of each, and what it has printed.
  """
  with contextlib.ExitStack() as stack:
    outputs = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(number)]
    workers = [
        subprocess.Popen([sys.executable, "-B", *arguments], env={**os.environ, "TF_CONFIG": config}, stdout=output)
        for config, output in zip(worker_configs(number), outputs)]
    deadline = time.monotonic() + seconds
    try:
      while None in [worker.poll() for worker in workers] and time.monotonic() < deadline:
        if any(worker.returncode for worker in workers):
          deadline = min(deadline, time.monotonic() + seconds_alone)
          seconds_alone = seconds
        time.sleep(0.05)
    finally:
      for worker in workers:
        worker.kill()
        worker.wait()
    for output in outputs:
      output.seek(0)
    return [(worker.returncode, output.read()) for worker, output in zip(workers, outputs)]
