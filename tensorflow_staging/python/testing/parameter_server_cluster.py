# SPDX-License-Identifier: Apache-2.0
"""A cluster for tests; each of its tasks is a process on this machine."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from tensorflow_staging.python.testing import loopback
from tensorflow_staging.python.testing import program_environment

_PROGRAM = pathlib.Path(__file__).parent / "parameter_server_task.py"

# How long a task may take to answer a request, or to exit.
_TIMEOUT_SECONDS = 60
# How many records each worker has.
_RECORDS = 40


class Failed(Exception):
  """A request raised an error in the task."""

  def __init__(self, kind: str, message: str):
    super().__init__(f"{kind}: {message}")
    # The name of the error's class in the task.
    self.kind = kind


class Task:
  """A process that runs `parameter_server_task.py`.

  Every method of the program's `_Task` can be called here with keyword arguments: it runs in the process, and the
  call returns its result or raises `Failed`.
  """

  def __init__(self, log: pathlib.Path):
    """Starts the process.

    Args:
      log: The file that receives the process's standard output and standard error.
    """
    self._log = log
    self._connection, other_end = multiprocessing.Pipe()
    environment = program_environment.without_source_tree()
    with other_end, log.open("w") as output:
      # -I keeps the program's folder off the import path, so that the process imports the installed wheel.
      self._process = subprocess.Popen(
          [sys.executable, "-I", _PROGRAM, str(other_end.fileno())], env=environment | {"TF_API_VERSION": "1"},
          stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=[other_end.fileno()])

  def __getattr__(self, name: str) -> Callable[..., Any]:
    return lambda **arguments: self.begin(name, **arguments)()

  @property
  def pid(self) -> int:
    """The process ID."""
    return self._process.pid

  def begin(self, name: str, /, **arguments) -> Callable[[], Any]:
    """Starts a method in the task without waiting for it.

    Args:
      name: A method of `_Task`.
      **arguments: Its arguments.

    Returns:
      A function that waits for the method. It returns the method's result, or raises `Failed` if the method raised an
      error, `TimeoutError` if the task does not answer in time, and `RuntimeError` if the task died.
    """
    self._connection.send((name, arguments))
    return functools.partial(self._answer, name)

  def _answer(self, name: str) -> Any:
    if not self._connection.poll(_TIMEOUT_SECONDS):
      raise TimeoutError(f"The task did not answer {name} within {_TIMEOUT_SECONDS} s. {self._log_tail()}")
    try:
      value, error = self._connection.recv()
    except (EOFError, ConnectionResetError):
      raise RuntimeError(f"The task died in {name}. {self._log_tail()}") from None
    if error:
      raise Failed(*error)
    return value

  def kill(self) -> None:
    """Kills the process with SIGKILL."""
    self._process.send_signal(signal.SIGKILL)
    self._process.wait(_TIMEOUT_SECONDS)
    self._connection.close()

  def end(self) -> None:
    """Lets the program reach its end, and fails unless it exits with status 0."""
    self._connection.send(None)
    status = self._process.wait(_TIMEOUT_SECONDS)
    self._connection.close()
    assert status == 0, self._log_tail()

  def _log_tail(self) -> str:
    return f"The end of {self._log}:\n{self._log.read_text()[-4000:]}"


class Cluster:
  """One parameter server, some workers, and a client process that runs no server."""

  def __init__(self, folder: pathlib.Path, workers: int):
    """Starts all processes and servers.

    Args:
      folder: The folder for their logs.
      workers: The number of workers.
    """
    self._folder = folder
    self._tasks = []
    ports = loopback.free_ports(1 + workers)
    addresses = [f"127.0.0.1:{port}" for port in ports]
    # As `tf.train.ClusterSpec` takes it.
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

  def records(self, index: int = 0) -> list[int]:
    """Returns the data of a worker; no two workers have a record in common."""
    return [1000 * index + number for number in range(_RECORDS)]

  def open(self, task: Task, index: int, name: str, lines: Sequence[str] | None = None, **options) -> None:
    """Opens a session of `task` that trains on the device of a worker.

    Args:
      task: The process that has the session.
      index: The worker.
      name: The name of the weight that it trains.
      lines: The data, as text; by default the records of the worker.
      **options: Further arguments of `_Task.open`.
    """
    if lines is None:
      lines = [str(record) for record in self.records(index)]
    task.open(name=name, cluster=self.spec, index=index, lines=lines, **options)

  def restart_server(self) -> None:
    """Starts a new parameter server at the address of the killed one."""
    self.server = self._new_task()
    self.server.serve(cluster=self.spec, job="ps", index=0)

  def restart_worker(self, index: int) -> None:
    """Starts a new worker at the address of the killed one."""
    self.workers[index] = self._new_task()
    self.workers[index].serve(cluster=self.spec, job="worker", index=index)

  def restart_client(self) -> None:
    """Starts a new client in place of the killed one."""
    self.client = self._new_task()

  def master(self, index: int) -> str:
    """Returns the target with which another process opens a session on a worker's server."""
    return f"grpc://{self.spec['worker'][index]}"

  def end(self) -> None:
    """Ends all processes, the parameter server last."""
    for task in (self.client, *self.workers, self.server):
      task.end()

  def kill(self) -> None:
    """Kills every process that this cluster started."""
    for task in self._tasks:
      task.kill()

  def _new_task(self) -> Task:
    task = Task(self._folder / f"task_{len(self._tasks)}.log")
    self._tasks.append(task)
    return task
