# SPDX-License-Identifier: Apache-2.0
"""Runs programs one after the other within a time budget."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import IO
from typing import NamedTuple

# What a program that is told to end gets until it is killed.
_GRACE_SECONDS = 5


class Result(NamedTuple):
  """How a program ended.

  Attributes:
    passed: Whether it exited with status 0 in time.
    outcome: The same in words.
    seconds: How long it ran.
  """

  passed: bool
  outcome: str
  seconds: float


class Budget:
  """The time that is left for all programs together.

  Args:
    seconds: All the time.
    reserve: The seconds that no program may use.
    grace: The seconds from the signal that asks a program to end to the one that kills it.
  """

  def __init__(self, seconds: float, reserve: float = 10, grace: float = _GRACE_SECONDS):
    self._end = time.monotonic() + seconds - reserve
    self._grace = grace

  def left(self) -> float:
    """Returns the seconds that the next program may run at most."""
    return max(0.0, self._end - self._grace - time.monotonic())

  def run(
      self, command: Sequence[str | pathlib.Path], share: float, log: pathlib.Path, environment: Mapping[str, str],
      folder: pathlib.Path, output: pathlib.Path | None = None, echo: Callable[[str], None] | None = None) -> Result:
    """Runs a program, and ends it, with all that it has started, when its time is over.

    Args:
      command: The program and its arguments.
      share: The seconds that it may run, if that many are left.
      log: The file for what it prints to stderr; and to stdout, unless `output` is given.
      environment: Its environment.
      folder: The folder in which it runs.
      output: The file for what it prints to stdout.
      echo: Gets each line that it prints to stdout, as soon as it is printed.
    """
    limit = min(share, self.left())
    if limit <= 0:
      return Result(False, "not run: no time was left", 0)
    began = time.monotonic()
    with contextlib.ExitStack() as files:
      errors = files.enter_context(log.open("wb"))
      printed = files.enter_context(output.open("wb")) if output else errors
      try:
        # A session of its own: the signals below reach all of its processes, and none of ours.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE if echo else printed, stderr=errors,
            env=dict(environment), cwd=folder, start_new_session=True)
      except OSError as error:
        return Result(False, f"could not be started: {error}", 0)
      reader = threading.Thread(target=_copy, args=(process.stdout, printed, echo)) if echo else None
      if reader:
        reader.start()
      try:
        status = process.wait(limit)
        outcome = "passed" if status == 0 else f"failed with status {status}"
      except subprocess.TimeoutExpired:
        status, outcome = None, f"ended after {round(limit, 1):g} s, its share of the time"
        _signal(process, signal.SIGTERM)
        try:
          process.wait(self._grace)
        except subprocess.TimeoutExpired:
          pass
      finally:
        # Also what a program that ended by itself has left behind.
        _signal(process, signal.SIGKILL)
        process.wait()
        if reader:
          reader.join()
    return Result(status == 0, outcome, time.monotonic() - began)


def _copy(source: IO[bytes], target: IO[bytes], echo: Callable[[str], None]) -> None:
  with source:
    for line in source:
      target.write(line)
      target.flush()
      echo(line.decode(errors="replace").rstrip("\n"))


def _signal(process: subprocess.Popen, number: signal.Signals) -> None:
  try:
    os.killpg(process.pid, number)
  except ProcessLookupError:
    pass
