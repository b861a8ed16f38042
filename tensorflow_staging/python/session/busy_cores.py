# SPDX-License-Identifier: Apache-2.0
"""How busy the cores are that this process may use, with whatever else runs on them."""

import dataclasses
import os
import pathlib
import time
from typing import Optional

_STAT = pathlib.Path("/proc/stat")
# What a container may use of them.
_QUOTA = pathlib.Path("/sys/fs/cgroup/cpu.max")
_USAGE = pathlib.Path("/sys/fs/cgroup/cpu.stat")

# In a line of /proc/stat: the columns of idle times, and how many columns there are for which no other one counts.
_IDLE = (3, 4)
_COLUMNS = 8
_MICRO = 1e-6


@dataclasses.dataclass(frozen=True)
class CoreTimes:
  """Totals up to a moment; differences of two are of use.

  Attributes:
    busy: How long the cores have been busy, in any unit.
    total: How long they have existed, in the same unit.
    quota_busy: How many seconds of CPU time the container has used, if its CPU time is limited.
    quota_total: How many it could have used.
    own: How many seconds of CPU time this process has used.
    own_total: How many it could have used on the cores.
  """

  busy: int
  total: int
  quota_busy: float = 0.0
  quota_total: float = 0.0
  own: float = 0.0
  own_total: float = 0.0


def now() -> Optional[CoreTimes]:
  """Returns the times of the cores that this process may use; None where the kernel does not say."""
  try:
    cpus = os.sched_getaffinity(0)
    busy, total = _parse(_STAT.read_text(), cpus)
    return CoreTimes(busy, total, *_quota(), time.process_time(), time.monotonic() * len(cpus))
  except (OSError, ValueError, IndexError):
    return None


def busy(before: Optional[CoreTimes], after: Optional[CoreTimes]) -> Optional[float]:
  """Returns which part of the time between two moments the cores were busy, from 0 to 1; None if that is unknown."""
  if before is None or after is None or after.total <= before.total:
    return None
  parts = [(after.busy - before.busy) / (after.total - before.total)]
  if after.quota_total > before.quota_total > 0:
    parts.append((after.quota_busy - before.quota_busy) / (after.quota_total - before.quota_total))
  return min(1.0, max(0.0, *parts))


def own(before: Optional[CoreTimes], after: Optional[CoreTimes]) -> Optional[float]:
  """Returns which part of the time between two moments this process itself kept the cores busy; None if unknown."""
  if before is None or after is None or after.own_total <= before.own_total:
    return None
  return min(1.0, max(0.0, (after.own - before.own) / (after.own_total - before.own_total)))


def _parse(stat: str, cpus: set[int]) -> tuple[int, int]:
  """Sums up the lines of /proc/stat for these cores."""
  idle = total = 0
  for line in stat.splitlines():
    name, *times = line.split()
    if name.startswith("cpu") and name != "cpu" and int(name[3:]) in cpus:
      counted = [int(time) for time in times[:_COLUMNS]]
      idle += sum(counted[column] for column in _IDLE)
      total += sum(counted)
  return total - idle, total


def _quota() -> tuple[float, float]:
  """Returns what a container has used and could have used of its limited CPU time; zeros without a limit."""
  try:
    limit, period = _QUOTA.read_text().split()
    usage = dict(line.split() for line in _USAGE.read_text().splitlines())["usage_usec"]
  except (OSError, ValueError, KeyError):
    return 0.0, 0.0
  if limit == "max":
    return 0.0, 0.0
  return int(usage) * _MICRO, int(limit) / int(period) * time.monotonic()
