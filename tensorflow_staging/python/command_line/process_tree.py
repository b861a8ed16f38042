# SPDX-License-Identifier: Apache-2.0
"""Runs a program, and ends it with all processes that it has started."""

import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
from collections.abc import Mapping
from typing import Optional

# From linux/prctl.h.
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
  """Makes this process the parent of the processes that its descendants leave, so that it can find them."""
  ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(
    command: list[str], environment: Mapping[str, str], output: pathlib.Path, seconds: float) -> Optional[int]:
  """Runs a program to its end, or for a time.

  `adopt_orphans` has to be called before. No process of the program is left afterwards, unless this
  process itself is killed.

  Args:
    command: The command.
    environment: The environment of the program.
    output: The file for what it writes.
    seconds: How long it may take.

  Returns:
    Its exit status, as `subprocess.Popen.returncode`; None if it took longer.
  """
  others = _children()
  with output.open("wb") as file:
    process = subprocess.Popen(
        command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
        start_new_session=True)
  try:
    return process.wait(seconds)
  except subprocess.TimeoutExpired:
    return None
  finally:
    with contextlib.suppress(ProcessLookupError):
      os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    _end_children(others)


def _end_children(but: set[int]) -> None:
  """Kills the children of this process, those that become its children thereby, and so on."""
  while children := _children() - but:
    for child in children:
      # A program with another owner cannot be killed.
      with contextlib.suppress(ProcessLookupError, ChildProcessError, PermissionError):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _children() -> set[int]:
  """Returns the processes whose parent is this one."""
  found = set()
  for task in pathlib.Path("/proc/self/task").iterdir():
    with contextlib.suppress(OSError):  # The thread has ended.
      found |= {int(word) for word in (task / "children").read_text().split()}
  return found
