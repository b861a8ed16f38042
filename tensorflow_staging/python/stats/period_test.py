# SPDX-License-Identifier: Apache-2.0
"""What a stage did in a period follows from its statistics at two moments."""

import pytest

from tensorflow_staging.python.stats import period as period_lib
from tensorflow_staging.python.stats import stage_data
from tensorflow_staging.python.testing import stage_stats_data

_stats = stage_stats_data.stats


def test_the_waits_of_producers_are_those_of_one():
  period = period_lib.Period.between(None, _stats(producers_waited=8, threads=4), 10)
  assert period.producer_waits == pytest.approx(0.2)


def test_a_wait_that_began_before_the_period():
  assert period_lib.Period.between(None, _stats(step_waited=20), 10).step_waits == 1


def test_a_period_without_time():
  period = period_lib.Period.between(None, _stats(taken=1, step_waited=1), 0)
  assert (period.records_per_second, period.step_waits, period.producer_waits) == (0, 0, 0)


def test_times_of_a_step_and_of_a_record():
  before = _stats(steps=stage_data.StepStats(10, 1.0, 0.5), region=stage_data.RegionStats(10, 2.0, 0.0))
  after = _stats(steps=stage_data.StepStats(30, 2.0, 0.7), region=stage_data.RegionStats(20, 2.3, 5.0))
  period = period_lib.Period.between(before, after, 10, 0.25)
  assert period.steps == 20
  assert period.step_seconds == pytest.approx(0.05)
  assert period.wait_seconds == pytest.approx(0.01)
  assert period.region_seconds == pytest.approx(0.03)
  assert period.cores_busy == 0.25


def test_what_was_not_timed_is_unknown():
  period = period_lib.Period.between(None, _stats(), 10)
  assert (period.steps, period.step_seconds, period.wait_seconds, period.region_seconds) == (0, None, None, None)


def test_the_life_of_a_stage():
  period = period_lib.Period.of_life(_stats(
      steps=stage_data.StepStats(100, 2.0, 0.5), region=stage_data.RegionStats(100, 3.0, 1.0), cores_busy=0.5))
  assert period.records_per_second == pytest.approx(50)
  assert period.step_waits == pytest.approx(0.25)
  assert period.producer_waits == pytest.approx(0.25)
  assert (period.step_seconds, period.region_seconds, period.cores_busy) == (0.02, 0.03, 0.5)


def test_a_life_without_steps():
  period = period_lib.Period.of_life(_stats())
  assert (period.records_per_second, period.step_waits, period.producer_waits) == (0, 0, 0)
