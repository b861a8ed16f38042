# SPDX-License-Identifier: Apache-2.0
"""How busy the cores are is read from what the kernel says."""

import os
import time

import pytest

from tensorflow_staging.python.session import busy_cores

_STAT = """\
cpu  300 0 0 700 0 0 0 0 0 0
cpu0 100 20 30 40 5 6 7 8 1000 1000
cpu1 1 0 0 99 0 0 0 0 0 0
cpu10 50 0 0 50 0 0 0 0 0 0
intr 1 2 3
"""


def test_only_the_cores_that_the_process_may_use_count():
  assert busy_cores._parse(_STAT, {0}) == (171, 216)
  assert busy_cores._parse(_STAT, {1, 10}) == (51, 200)


@pytest.mark.parametrize("before,after,expected", [
    ((100, 200), (150, 300), 0.5),
    ((100, 200), (100, 200), None),
    ((100, 200, 1.0, 10.0), (150, 300, 5.0, 14.0), 1.0),
    ((100, 200, 1.0, 10.0), (190, 300, 3.0, 20.0), 0.9),
])
def test_the_part_of_the_time(before, after, expected):
  busy = busy_cores.busy(busy_cores.CoreTimes(*before), busy_cores.CoreTimes(*after))
  assert busy == (None if expected is None else pytest.approx(expected))


def test_what_is_unknown():
  assert busy_cores.busy(None, busy_cores.now()) is None
  assert busy_cores.own(None, busy_cores.now()) is None
  moment = busy_cores.now()
  assert busy_cores.own(moment, moment) is None


def test_the_part_of_this_process():
  before, after = (busy_cores.CoreTimes(0, 0, own=own, own_total=total) for own, total in ((1.0, 10.0), (2.0, 14.0)))
  assert busy_cores.own(before, after) == pytest.approx(0.25)


@pytest.mark.alone
def test_a_core_that_computes_is_busy():
  before = busy_cores.now()
  # The CPU time of this process, however much of it others take.
  end = time.process_time() + 0.3
  while time.process_time() < end:
    pass
  after = busy_cores.now()
  assert busy_cores.busy(before, after) > 0.5 / len(os.sched_getaffinity(0))
  assert 0 < busy_cores.own(before, after) <= busy_cores.busy(before, after) + 0.2
