# SPDX-License-Identifier: Apache-2.0
"""The sum over the stages of several iterators says how busy the cores were in all."""

import pytest

from tensorflow_staging.python.ahead import iterator_counts
from tensorflow_staging.python.stats import counted_stages

_WAITS = {"calls": 20, "waits": 0, "total_micros": 0, "p50_micros": 0, "p99_micros": 0}


def _counts(seconds, cores_busy, own_busy):
  buffer = {
      "capacity": 4, "room": 4, "tunes_capacity": True, "capacity_bytes": 0, "device_capacity_bytes": 0, "records": 0,
      "bytes": 0, "device_bytes": {}, "put": 20, "taken": 20, "dropped": 0, "discarded": 0, "kept_on_host": 0,
      "waiting_puts": 0, "waiting_takes": 0, "put_waits": _WAITS, "take_waits": _WAITS, "error_code": 0,
      "error_message": b"", "capacity_settled": True, "steps": 20, "step_micros": 200_000, "step_wait_micros": 0,
      "state": "open"
  }
  return iterator_counts.IteratorCounts(
      name="train", num_threads=1, tunes_threads=False, threads_settled=True, buffer=buffer, timed_records=20,
      record_micros=100_000, seconds=seconds, cores_busy=cores_busy, own_busy=own_busy)


def test_the_mean_is_by_time():
  counts = iterator_counts.in_all([_counts(1, 0.2, 0.1), _counts(3, 1.0, 0.9), _counts(5, None, None)])
  assert (counts.seconds, counts.cores_busy, counts.own_busy) == (9, pytest.approx(0.8), pytest.approx(0.7))
  unknown = iterator_counts.in_all([_counts(1, None, None)])
  assert (unknown.cores_busy, unknown.own_busy) == (None, None)


@pytest.mark.parametrize("busy, expected", [(0.5, "hid about 5.0 of 15.0 ms a step; "), (0.97, "hid at most 5.0 of ")])
def test_on_busy_cores_a_step_of_tensorflow_2_has_only_a_bound(busy, expected):
  counted = counted_stages._counts_of_iterators(_counts(1, busy, busy), is_alive=True)
  stage, = counted_stages.stages_of([counted])
  assert stage.cores_busy == busy and stage.gain.startswith(expected)
