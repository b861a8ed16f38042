# SPDX-License-Identifier: Apache-2.0
"""Reads from a profile whether a GPU copies, and runs the kernels of a stage, while it computes the step."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Callable
from collections.abc import Iterable
from typing import NamedTuple

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

# From and to, in picoseconds.
Interval = tuple[int, int]


class Overlap(NamedTuple):
  """What a GPU did during some steps, in seconds."""

  # How long it ran any kernel.
  kernels: float
  # How long it copied from the host, and how much of that was beside a kernel.
  copies: float
  copies_beside_kernels: float
  # How long kernels of two streams ran at the same time.
  kernels_beside_kernels: float


def union(intervals: Iterable[Interval]) -> list[Interval]:
  """Returns the same time as intervals that do not touch each other, in their order."""
  result: list[Interval] = []
  for begin, end in sorted(intervals):
    if result and begin <= result[-1][1]:
      result[-1] = result[-1][0], max(result[-1][1], end)
    else:
      result.append((begin, end))
  return result


def intersection(left: list[Interval], right: list[Interval]) -> list[Interval]:
  """Returns the time that is in both; each must be a result of `union`."""
  result: list[Interval] = []
  i = j = 0
  while i < len(left) and j < len(right):
    begin, end = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
    if begin < end:
      result.append((begin, end))
    if left[i][1] < right[j][1]:
      i += 1
    else:
      j += 1
  return result


def length(intervals: Iterable[Interval]) -> float:
  """Returns the seconds of intervals that do not overlap."""
  return sum(end - begin for begin, end in intervals) * 1e-12


def overlap_of(space: xplane_pb2.XSpace) -> Overlap | None:
  """Returns what the GPUs of a profile did together; None if it has no GPU."""
  planes = [plane for plane in space.planes if plane.name.startswith("/device:GPU:")]
  if not planes:
    return None
  kernels: list[list[Interval]] = []
  copies: list[Interval] = []
  for plane in planes:
    for line in plane.lines:
      # The other lines of the plane group the events of the streams.
      if not line.name.startswith("Stream"):
        continue
      of_line: list[Interval] = []
      for event in line.events:
        begin = line.timestamp_ns * 1000 + event.offset_ps
        name = plane.event_metadata[event.metadata_id].name
        if name.startswith("MemcpyH2D"):
          copies.append((begin, begin + event.duration_ps))
        elif not name.startswith(("Memcpy", "Memset")):
          of_line.append((begin, begin + event.duration_ps))
      kernels.append(union(of_line))
  computing = union(interval for of_line in kernels for interval in of_line)
  copying = union(copies)
  return Overlap(
      kernels=length(computing),
      copies=length(copying),
      copies_beside_kernels=length(intersection(computing, copying)),
      kernels_beside_kernels=sum(map(length, kernels)) - length(computing))


def profile(step: Callable[[], object], steps: int) -> Overlap | None:
  """Runs steps under the profiler; returns what the GPUs did, or None if there is none."""
  with tempfile.TemporaryDirectory() as folder:
    with tf.compat.v2.profiler.experimental.Profile(folder):
      for _ in range(steps):
        step()
    path, = pathlib.Path(folder).rglob("*.xplane.pb")
    return overlap_of(xplane_pb2.XSpace.FromString(path.read_bytes()))
