# SPDX-License-Identifier: Apache-2.0
"""Processes that begin as forks of one interpreter, which has imported what all of them need.

An import of TensorFlow takes three seconds, more than most of its test files.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable


def serve(run: Callable[[str], None]) -> None:
  """Forks for each line of its input, a JSON list: what `run` gets, a file for stderr, and what its environment gets.

  A fork works in the folder of that file, and leads a session of its own.
  Prints the process of each fork, and then its exit status; if a signal ended it, the signal's number, negated.
  """
  # Otherwise each fork would look for garbage among all that was imported, and copy it.
  gc.collect()
  gc.freeze()
  for line in sys.stdin:
    what, log, environment = json.loads(line)
    process = os.fork()
    if process == 0:
      os.setsid()
      os.environ.update(environment)
      os.chdir(os.path.dirname(log))
      for number, path, mode in ((0, os.devnull, os.O_RDONLY), (1, os.devnull, os.O_WRONLY), (2, log, os.O_WRONLY)):
        os.dup2(os.open(path, mode | os.O_CREAT), number)
      # The end of `run` is that of the interpreter.
      return run(what)
    print(process, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


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

  def run(self, what: str, log: str, environment: dict[str, str], seconds: float, more_seconds: float) -> int | None:
    """Runs a fork, and kills every process that it leaves.

    Args:
      what: What the fork gets.
      log: The path of a file for its standard error. It works in the folder of that.
      environment: What its environment gets.
      seconds: How long it may take before SIGABRT.
      more_seconds: How long it may take then.

    Returns:
      Its exit status as `serve` says it, or None if it took too long.
    """
    self._process.stdin.write(json.dumps([what, log, environment]).encode() + b"\n")
    self._process.stdin.flush()
    process = self._number()
    in_time = self._says_more(seconds)
    if not in_time:
      os.kill(process, signal.SIGABRT)
      self._says_more(more_seconds)
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
        raise RuntimeError("The interpreter from which test files are forked has ended.")
      line += byte
    return int(line)
