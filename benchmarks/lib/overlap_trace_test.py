# SPDX-License-Identifier: Apache-2.0
"""What a profile says about copies and kernels that overlap."""

import pytest
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from lib import overlap_trace


@pytest.mark.parametrize("intervals,expected", [
    ([], []),
    ([(3, 5), (1, 2)], [(1, 2), (3, 5)]),
    ([(1, 4), (2, 3), (4, 6)], [(1, 6)]),
])
def test_union(intervals, expected):
  assert overlap_trace.union(intervals) == expected


@pytest.mark.parametrize("left,right,expected", [
    ([(0, 10)], [], []),
    ([(0, 10)], [(2, 3), (5, 20)], [(2, 3), (5, 10)]),
    ([(0, 2), (4, 6)], [(1, 5)], [(1, 2), (4, 5)]),
    ([(0, 2)], [(2, 4)], []),
])
def test_intersection(left, right, expected):
  assert overlap_trace.intersection(left, right) == expected
  assert overlap_trace.intersection(right, left) == expected


def _space(lines: dict[str, list[tuple[str, int, int]]]) -> xplane_pb2.XSpace:
  """Returns a profile of a GPU. Events are names with their begin and end in milliseconds."""
  space = xplane_pb2.XSpace()
  plane = space.planes.add(name="/device:GPU:0")
  for name, events in lines.items():
    # Each line counts from a time of its own.
    line = plane.lines.add(name=name, timestamp_ns=1_000_000)
    for event, begin, end in events:
      number = len(plane.event_metadata) + 1
      plane.event_metadata[number].name = event
      line.events.add(
          metadata_id=number, offset_ps=(begin - 1) * 10**9, duration_ps=(end - begin) * 10**9)
  return space


def test_what_a_gpu_does_at_the_same_time():
  overlap = overlap_trace.overlap_of(_space({
      "Stream #1(Compute)": [("gemm", 10, 20), ("add", 20, 25), ("MemcpyD2H", 30, 90)],
      "Stream #2(Compute)": [("gather", 15, 30), ("Memset", 1, 90)],
      "Stream #3(MemcpyH2D)": [("MemcpyH2D", 24, 40)],
      "TensorFlow Ops": [("MatMul", 1, 90)],
  }))
  assert overlap.kernels == pytest.approx(0.020)
  assert overlap.copies == pytest.approx(0.016)
  assert overlap.copies_beside_kernels == pytest.approx(0.006)
  assert overlap.kernels_beside_kernels == pytest.approx(0.010)


def test_a_profile_without_a_gpu():
  assert overlap_trace.overlap_of(xplane_pb2.XSpace()) is None


def test_steps_on_a_machine_without_a_gpu_can_be_profiled():
  ran = []
  overlap_trace.profile(lambda: ran.append(1), 3)
  assert len(ran) == 3
