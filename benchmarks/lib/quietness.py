# SPDX-License-Identifier: Apache-2.0
"""Says how much of the cores others took while something was measured."""

from __future__ import annotations

import os
import pathlib
import resource
import time
from typing import NamedTuple

_TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")


class Disturbance(NamedTuple):
  """Shares of the time of all cores."""

  # Of other processes; those that this one started and waited for are its own.
  others: float
  # Of other machines on the same hardware.
  stolen: float

  def __str__(self) -> str:
    return (
        f"other processes took {self.others:.1%} of the cores' time, and other machines on the same hardware"
        f" {self.stolen:.1%}")


class Watch:
  """Watches from its creation on."""

  def __init__(self):
    self._began = _now()

  def disturbance(self) -> Disturbance:
    """Returns how much others took until now."""
    elapsed, busy, stolen, own = (now - before for now, before in zip(_now(), self._began, strict=True))
    cores = elapsed * os.cpu_count()
    return Disturbance(max(0.0, (busy - own) / cores), stolen / cores)


def _now() -> tuple[float, float, float, float]:
  """Returns the clock, the busy and the stolen seconds of all cores, and the CPU seconds of this process."""
  user, nice, system, _, _, interrupts, soft, stolen, *_ = (
      int(ticks) * _TICK_SECONDS
      for ticks in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:])
  own = sum(
      usage.ru_utime + usage.ru_stime
      for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
  return time.monotonic(), user + nice + system + interrupts + soft, stolen, own
