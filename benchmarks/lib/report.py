# SPDX-License-Identifier: Apache-2.0
"""What the pages of the benchmarks share: tables, and the description of the machine."""

from __future__ import annotations

import datetime
import os
import pathlib
import platform
import re
import subprocess
from collections.abc import Sequence

import tensorflow as tf

from lib import blocks


def markdown(rows: Sequence[tuple[str, ...]], left: int = 1) -> str:
  """Returns a table, whose first row is the heading; all but the first `left` columns are numbers."""
  head, *body = rows
  line = tuple("---" if column < left else "---:" for column in range(len(head)))
  return "\n".join(f"| {' | '.join(row)} |" for row in (head, line, *body))


def machine() -> str:
  """Returns the cores, the memory and the system on which this runs."""
  model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
  memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
  return (
      f"{os.cpu_count()} cores ({model[1] if model else platform.processor()}), {memory:.0f} GiB of memory,"
      f" {platform.system()} {platform.machine()}")


def run() -> str:
  """Returns the line of a page that says where and when it was measured, and the commit of the wheel."""
  today = datetime.date.today()
  commit = _commit()
  return (
      f"One run on {machine()}, {today.day} {today:%B %Y},"
      f" {f'commit {commit[:7]}' if commit else 'a wheel of no commit'}.")


def _commit() -> str:
  """Returns the commit of the wheel; of the plugin, whose wheel does not tell, that of this clone."""
  if hasattr(tf.staging, "build_info"):
    return tf.staging.build_info().commit
  git = ["git", "-C", os.path.dirname(__file__), "rev-parse", "HEAD"]
  return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()


def command(name: str) -> str:
  """Returns the lines of a page that say how it was made."""
  return f"`.venv/bin/python benchmarks/{name}.py > benchmarks/{name}.md`\n\n{run()}"


def milliseconds(seconds: float) -> str:
  """Returns a time in milliseconds, with three digits or more."""
  return f"{seconds * 1e3:.{2 if seconds < 0.01 else 1}f}"


INTERVAL = "95 % interval"


def interval(ratio: blocks.Ratio, digits: int = 2) -> str:
  """Returns the interval of a ratio's median, for a column with the title `INTERVAL`."""
  return f"{ratio.low:.{digits}f}–{ratio.high:.{digits}f}"


def milliseconds_interval(seconds: Sequence[float]) -> str:
  """Returns the interval of the median of times, in milliseconds, for a column with the title `INTERVAL`."""
  found = blocks.interval(seconds)
  return f"{found.low * 1e3:.2f}–{found.high * 1e3:.2f}"


def limit(record: blocks.Cost, step: blocks.Cost, cores: int) -> float:
  """Returns the seconds in which the cores can do the work of a record and a step, if none of them ever idles."""
  return (record.cpu_seconds + step.cpu_seconds) / cores
