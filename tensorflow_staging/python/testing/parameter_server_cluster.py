# SPDX-License-Identifier: Apache-2.0
"""A cluster whose tasks are processes of their own on this machine, for tests."""

import contextlib
import functools
import multiprocessing
import os
import pathlib
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

_PROGRAM = pathlib.Path(__file__).parent / "parameter_server_task.py"

# How long a task may take for an answer, or to end.
_SECONDS = 60


class Failed(Exception):
  """What a task was asked to do has raised an error there."""

  def __init__(self, kind: str, message: str):
    super().__init__(f"{kind}: {message}")
    # The name of the error's class.
    self.kind = kind


class Task:
  """A process that runs `parameter_server_task.py`; each method of `_Task` there is one here."""

  def __init__(self, log: pathlib.Path):
    """Starts the process.

    Args:
      log: Where it writes what it has to say.
    """
    self._log = log
    self._connection, other_end = multiprocessing.Pipe()
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with other_end, log.open("w") as output:
      # -P: the wheel, and not what stands beside the program.
      self._process = subprocess.Popen(
          [sys.executable, "-P", _PROGRAM, str(other_end.fileno())], env=environment | {"TF_API_VERSION": "1"},
          stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=[other_end.fileno()])

  def __getattr__(self, name: str) -> Callable[..., Any]:
    return lambda **arguments: self.begin(name, **arguments)()

  @property
  def pid(self) -> int:
    """The number of the process."""
    return self._process.pid

  def begin(self, name: str, /, **arguments) -> Callable[[], Any]:
    """Asks for something; what is returned waits for the answer.

    Args:
      name: A method of `_Task`.
      **arguments: Its arguments.

    Returns:
      A function that returns what the method returns there, or raises `Failed`.
    """
    self._connection.send((name, arguments))
    return functools.partial(self._answer, name)

  def _answer(self, name: str) -> Any:
    if not self._connection.poll(_SECONDS):
      raise TimeoutError(f"{name} takes too long. {self._last_words()}")
    try:
      value, error = self._connection.recv()
    except (EOFError, ConnectionResetError):
      raise RuntimeError(f"The task has died in {name}. {self._last_words()}") from None
    if error:
      raise Failed(*error)
    return value

  def kill(self) -> None:
    """Kills the process, whatever it does."""
    self._process.send_signal(signal.SIGKILL)
    self._process.wait(_SECONDS)
    self._connection.close()

  def end(self) -> None:
    """Has the program end, as one does that has no more to do; its exit status has to be 0."""
    self._connection.send(None)
    status = self._process.wait(_SECONDS)
    self._connection.close()
    assert status == 0, self._last_words()

  def _last_words(self) -> str:
    return f"The end of {self._log}:\n{self._log.read_text()[-4000:]}"


class Cluster:
  """One parameter server, some workers, and a client, which has no server."""

  def __init__(self, folder: pathlib.Path, workers: int):
    """Starts all of them.

    Args:
      folder: Where their logs are written.
      workers: How many workers there are.
    """
    self._folder = folder
    self._tasks = []
    ports = free_ports(1 + workers)
    addresses = [f"127.0.0.1:{port}" for port in ports]
    # What TensorFlow calls a cluster.
    self.spec = {"ps": addresses[:1], "worker": addresses[1:]}
    with contextlib.ExitStack() as stack:
      stack.callback(self.kill)
      self.server, self.client, *self.workers = [self._new_task() for _ in range(2 + workers)]
      answers = [self.server.begin("serve", cluster=self.spec, job="ps", index=0)]
      for index, worker in enumerate(self.workers):
        answers.append(worker.begin("serve", cluster=self.spec, job="worker", index=index))
      for answer in answers:
        answer()
      stack.pop_all()

  def restart_server(self) -> None:
    """Starts another parameter server with the address of the one that was killed."""
    self.server = self._new_task()
    self.server.serve(cluster=self.spec, job="ps", index=0)

  def restart_worker(self, index: int) -> None:
    """Starts another worker with the address of the one that was killed."""
    self.workers[index] = self._new_task()
    self.workers[index].serve(cluster=self.spec, job="worker", index=index)

  def restart_client(self) -> None:
    """Starts another client after the first one was killed."""
    self.client = self._new_task()

  def master(self, index: int) -> str:
    """The target for sessions of other processes on the server of a worker."""
    return f"grpc://{self.spec['worker'][index]}"

  def end(self) -> None:
    """Ends all of them, the parameter server last."""
    for task in (self.client, *self.workers, self.server):
      task.end()

  def kill(self) -> None:
    """Kills every process that has ever been started here and still lives."""
    for task in self._tasks:
      task.kill()

  def _new_task(self) -> Task:
    task = Task(self._folder / f"task_{len(self._tasks)}.log")
    self._tasks.append(task)
    return task


def free_ports(count: int) -> list[int]:
  """Ports of this machine that nobody listens on."""
  with contextlib.ExitStack() as stack:
    sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
    return [each.getsockname()[1] for each in sockets]
