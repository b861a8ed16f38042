# SPDX-License-Identifier: Apache-2.0
"""The line about a stage says what it did, and what to change."""

import pytest

from tensorflow_staging.python.stats import advice
from tensorflow_staging.python.stats import stage_stats


def _stats(
    taken=0, step_waited=0.0, producers_waited=0.0, threads=1, capacity=1, room=None, autotune=False, waiting_takes=0,
    error=None
) -> stage_stats.StageStats:

  def waits(total):
    return stage_stats.WaitStats(
        calls=1, waits=1, total_seconds=total, mean_seconds=total, p50_seconds=total, p99_seconds=total)

  return stage_stats.StageStats(
      name="prefetch", running=error is None, num_threads=threads, capacity=capacity,
      room=capacity if room is None else room, autotune=autotune, capacity_bytes=0, records=1, bytes=3 * 2**19,
      put=taken + 1, taken=taken, dropped=0, discarded=0, ignored=0, waiting_puts=0, waiting_takes=waiting_takes,
      put_wait=waits(producers_waited), take_wait=waits(step_waited), error=error)


def _line(after, before=None, seconds=10.0) -> str:
  return advice.line(after, advice.Period.between(before, after, seconds))


def test_the_whole_line():
  before = _stats(taken=100, step_waited=1.0)
  assert _line(_stats(taken=512, step_waited=4.8), before) == (
      "Stage 'prefetch': 41.2 records/s, 1 of 1 in the buffer (1.5 MiB). Steps waited for records 38% of the time,"
      " producers for room 0%: the stage is slower than the step; raise num_threads (now 1).")


def test_a_buffer_that_fills_slowly():
  assert "records/s, 1 of 4 (later 40) in the buffer (1.5 MiB)." in _line(_stats(capacity=40, room=4))


@pytest.mark.parametrize("stats,expected", [
    (_stats(step_waited=0.4), "the step hardly waits; nothing to change."),
    (_stats(step_waited=0.4, producers_waited=9), "the step hardly waits; nothing to change."),
    (_stats(step_waited=2, threads=4), "raise num_threads (now 4)."),
    (_stats(step_waited=2, producers_waited=3), "raise capacity (now 1), or set it to tf.data.AUTOTUNE."),
    (_stats(step_waited=2, producers_waited=3, autotune=True), "the buffer adapts its capacity."),
    (_stats(step_waited=2, producers_waited=3, capacity=40, room=8), "the buffer still grows to its capacity."),
    (_stats(step_waited=2, error="OUT_OF_RANGE: end"), "the stage has ended (OUT_OF_RANGE: end)"),
])
def test_the_advice(stats, expected):
  assert _line(stats).endswith(expected)


def test_the_waits_of_producers_are_those_of_one():
  period = advice.Period.between(None, _stats(producers_waited=8, threads=4), 10)
  assert period.producer_waits == pytest.approx(0.2)


def test_a_wait_that_began_before_the_period():
  assert advice.Period.between(None, _stats(step_waited=20), 10).step_waits == 1


def test_a_step_that_waits_all_the_time():
  waits = _stats(taken=7, waiting_takes=1)
  advised = "a step waits, and no record has come; the input of the stage is slow, or hangs."
  end = f" of the time, producers for room 0%: {advised}"
  # When the wait began is unknown in its first period.
  assert _line(waits, _stats(taken=7)).endswith("Steps waited for records 0%" + end)
  assert _line(waits, waits).endswith("Steps waited for records 100%" + end)
  assert advised not in _line(_stats(taken=8, waiting_takes=1), waits)


def test_a_period_without_time():
  period = advice.Period.between(None, _stats(taken=1, step_waited=1), 0)
  assert (period.records_per_second, period.step_waits, period.producer_waits) == (0, 0, 0)
