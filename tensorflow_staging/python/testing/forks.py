# SPDX-License-Identifier: Apache-2.0
"""Programs that begin as forks of one interpreter, which has imported what all of them need.

An import of TensorFlow takes three seconds, more than most of its test files and most of our programs. Imports nothing
beyond Python: TensorFlow's own tests use it as well (ci/upstream), on wheels that have none of our code.
"""

from __future__ import annotations

import gc
import json
import os
import pathlib
import runpy
import select
import signal
import subprocess
import sys
from collections.abc import Callable


def serve(run: Callable[[str], None]) -> None:
  """Forks for each line of its input, a JSON list with the arguments of `Server.run`; the fork calls `run`.

  Prints the process of each fork, and then its exit status; if a signal ended it, the signal's number, negated.

  Args:
    run: Gets the path of a program. In the fork it is the last call: its end is that of the interpreter.
  """
  # Otherwise each fork would look for garbage among all that was imported, above all at its end, and copy it.
  gc.collect()
  gc.freeze()
  for line in sys.stdin:
    program, folder, stdout, stderr, environment = json.loads(line)
    process = os.fork()
    if process == 0:
      os.setsid()
      os.environ.update(environment)
      os.chdir(folder)
      for number, path, mode in ((0, os.devnull, os.O_RDONLY), (1, stdout, os.O_WRONLY), (2, stderr, os.O_WRONLY)):
        os.dup2(os.open(path, mode | os.O_CREAT), number)
      return run(program)
    print(process, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


def run_program(program: str) -> None:
  """Runs a program as if the interpreter had been started with it."""
  sys.argv[:] = [program]
  sys.path[0] = str(pathlib.Path(program).parent)
  runpy.run_path(program, run_name="__main__")


class Server:
  """An interpreter that runs `serve`. A context manager: at its end, the interpreter has ended."""

  def __init__(self, command: list[str], environment: dict[str, str]):
    self._process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

  def __enter__(self) -> Server:
    return self

  def __exit__(self, *error) -> None:
    self._process.stdin.close()
    self._process.wait()
    self._process.stdout.close()

  def run(
      self, program: str, *, folder: str, stderr: str, stdout: str = os.devnull,
      environment: dict[str, str] | None = None, seconds: float, more_seconds: float = 0) -> int | None:
    """Runs a program in a fork, which leads a session of its own, and kills every process that it leaves.

    Args:
      program: The path of the program.
      folder: The folder in which it works.
      stderr: The path of a file for its standard error.
      stdout: The same for its standard output.
      environment: What its environment has beside that of the interpreter.
      seconds: How long it may take before SIGABRT.
      more_seconds: How long it may take then.

    Returns:
      Its exit status as `serve` says it, or None if it took too long.
    """
    self._process.stdin.write(json.dumps([program, folder, stdout, stderr, environment or {}]).encode() + b"\n")
    self._process.stdin.flush()
    process = self._number()
    try:
      in_time = self._says_more(seconds)
      if not in_time:
        os.kill(process, signal.SIGABRT)
        self._says_more(more_seconds)
    finally:
      try:
        os.killpg(process, signal.SIGKILL)
      except ProcessLookupError:
        pass
      status = self._number()
    return status if in_time else None

  def _says_more(self, seconds: float) -> bool:
    return bool(select.select([self._process.stdout], [], [], seconds)[0])

  def _number(self) -> int:
    line = b""
    # Byte by byte: what a buffer holds would be hidden from select.
    while not line.endswith(b"\n"):
      byte = os.read(self._process.stdout.fileno(), 1)
      if not byte:
        raise RuntimeError("The interpreter from which programs are forked has ended.")
      line += byte
    return int(line)
