# SPDX-License-Identifier: Apache-2.0
"""The sentence about what a stage gained says what was measured."""

import pytest

from tensorflow_staging.python.stats import gain
from tensorflow_staging.python.stats import period as period_lib


def _period(step=0.0, wait=0.0, region=0.0, steps=100, busy=0.5) -> period_lib.Period:
  """A period whose times are given in milliseconds."""

  def seconds(millis):
    return None if millis is None else millis / 1000

  return period_lib.Period(
      records_per_second=10, step_waits=wait / step if step else 0.0, producer_waits=0, steps=steps,
      step_seconds=seconds(step), wait_seconds=seconds(wait), region_seconds=seconds(region), cores_busy=busy)


@pytest.mark.parametrize("period,sentence", [
    # All of the region is hidden.
    (_period(step=5.9, region=3.1), "hid about 3.1 of 9.0 ms a step; steps waited for records 0% of the time"),
    # A part of it.
    (_period(step=8, wait=2, region=6), "hid about 4.0 of 12.0 ms a step; steps waited for records 25% of the time"),
    # Nothing: with one producer and a step that does nothing, all of the region is waited for.
    (_period(step=6, wait=6, region=6), "hid about 0.0 of 6.0 ms a step; steps waited for records 100% of the time"),
    # Several producers hide more than a step takes.
    (_period(step=2, wait=1, region=9), "hid about 8.0 of 10.0 ms a step; steps waited for records 50% of the time"),
    # A wait can be longer than the region, as behind a slow start of a source.
    (_period(step=6, wait=6, region=5), "hid about 0.0 of 5.0 ms a step; steps waited for records 100% of the time"),
    # Times of other sizes.
    (_period(step=0.04, region=0.02), "hid about 0.020 of 0.060 ms a step; steps waited for records 0% of the time"),
    (_period(step=2000, region=1000), "hid about 1000 of 3000 ms a step; steps waited for records 0% of the time"),
    # Hardly anything runs ahead.
    (_period(step=9, region=0.02), "had nothing to gain: what runs ahead takes less than 1% of a step of 9.0 ms"),
    # Busy cores: only a bound is known.
    (_period(step=5.9, region=3.1, busy=0.97),
     "hid at most 3.1 of 9.0 ms a step, since the cores were 97% busy; steps waited for records 0% of the time"),
    (_period(step=5.9, region=3.1, busy=None),
     "hid about 3.1 of 9.0 ms a step; steps waited for records 0% of the time"),
    # Too little was measured.
    (_period(step=5.9, region=3.1, steps=7), "ran for 7 steps, too few to say what it gained; it takes 10"),
    (_period(step=5.9, region=None), "has timed no record, so what it gained is unknown"),
    (_period(step=None, wait=0, region=None, steps=0), "ran for 0 steps, too few to say what it gained; it takes 10"),
])
def test_the_sentence(period, sentence):
  assert gain.sentence(period) == sentence


@pytest.mark.parametrize("period,sentence", [
    (_period(step=8, wait=2, region=6), "made its records ahead; steps waited for them 25% of the time"),
    (_period(step=8, wait=2, region=6, busy=0.97), "made its records ahead; steps waited for them 25% of the time"),
    (_period(step=9, region=0.02), "had nothing to gain: what runs ahead takes less than 1% of a step"),
    (_period(step=5.9, region=3.1, steps=7), "ran for 7 steps, too few to say what it gained; it takes 10"),
])
def test_beside_what_was_measured_there_is_no_estimate(period, sentence):
  assert gain.of_comparison(period) == sentence


def test_hidden_time_in_seconds():
  period = _period(step=8, wait=2, region=6)
  assert gain.hidden_seconds(period) == pytest.approx(4e-3)
  assert gain.unstaged_seconds(period) == pytest.approx(12e-3)
  assert gain.hidden_seconds(_period(steps=0)) is None
