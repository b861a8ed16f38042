# SPDX-License-Identifier: Apache-2.0
"""Measures the CPU time of steps by who spends it, as the kernel's scheduler counts it."""

from __future__ import annotations

import contextlib
import os
import pathlib
from typing import NamedTuple

from lib import blocks

_TASKS = pathlib.Path("/proc/self/task")


class Spent(NamedTuple):
  """What a step takes, as the mean of a block, in seconds."""

  # From its begin to its end.
  elapsed: float
  # CPU time of the thread that calls `run`, of TensorFlow's pools, of a stage's producers, and of all other threads.
  caller: float
  pools: float
  producer: float
  others: float

  @property
  def cpu(self) -> float:
    """The CPU time of all threads."""
    return self.caller + self.pools + self.producer + self.others


class Threads:
  """Counts what threads spend. Those that exist at its creation, and do not call it, belong to TensorFlow's pools."""

  def __init__(self):
    self._pools = _nanoseconds().keys()

  def measure(self, step: blocks.Step, seconds: float, least_steps: int) -> Spent:
    """Measures a block of steps, like `blocks.cost`."""
    steps = 0

    def counted() -> None:
      nonlocal steps
      step()
      steps += 1

    before = _nanoseconds()
    elapsed = blocks.cost(counted, seconds, least_steps).seconds
    spent = dict.fromkeys(Spent._fields, 0.0)
    for thread, now in _nanoseconds().items():
      spent[self._owner(thread)] += (now - before.get(thread, 0)) / 1e9 / steps
    return Spent(**spent | {"elapsed": elapsed})

  def _owner(self, thread: int) -> str:
    if thread == os.getpid():
      return "caller"
    if thread in self._pools:
      return "pools"
    return "producer" if _name(thread).startswith("stage_") else "others"


def _nanoseconds() -> dict[int, int]:
  """Returns for how long each thread of this process has run."""
  result = {}
  for task in _TASKS.iterdir():
    # A thread may end meanwhile.
    with contextlib.suppress(OSError):
      result[int(task.name)] = int((task / "schedstat").read_text().split()[0])
  return result


def _name(thread: int) -> str:
  with contextlib.suppress(OSError):
    return (_TASKS / str(thread) / "comm").read_text()
  return ""
