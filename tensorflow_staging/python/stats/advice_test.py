# SPDX-License-Identifier: Apache-2.0
"""The line about a stage says what it did and gained, and what to do next."""

import itertools

import pytest

from tensorflow_staging.python.stats import advice
from tensorflow_staging.python.stats import period as period_lib
from tensorflow_staging.python.stats import stage_data
from tensorflow_staging.python.testing import stage_stats_data

_MIB = 2**20
_stats = stage_stats_data.stats


def _line(after, before=None, seconds=10.0) -> str:
  return advice.line(after, period_lib.Period.between(before, after, seconds))


def test_the_whole_line():
  before = _stats(taken=100, step_waited=1.0)
  after = _stats(
      taken=512, step_waited=4.8, steps=stage_data.StepStats(412, 10.0, 3.8),
      region=stage_data.RegionStats(412, 9.9, 0.0))
  assert _line(after, before) == (
      "Stage 'prefetch': 41.2 records/s, 1 of 1 in the buffer (1.5 MiB). It hid about 14.8 of 39.1 ms a step. Steps"
      " waited for records 38% of the time; the stage was ahead of them, with nothing to do, 0% of the time: the stage"
      " is slower than the step; raise num_threads (now 1), or let the stage choose with tf.data.AUTOTUNE. If what it"
      " reads is the limit, only a quicker source helps.")


def test_records_that_are_lost():
  assert "lost" not in _line(_stats()) and advice.lost(_stats()) == ""
  assert " ms a step. It dropped 2 records, which had found no room within timeout_millis. Steps waited" in _line(
      _stats(taken=512, dropped=2, steps=stage_data.StepStats(412, 10.0, 3.8),
             region=stage_data.RegionStats(412, 9.9, 0.0)))
  assert advice.lost(_stats(ignored=1)) == "It left out 1 record whose errors ignored_exception_types names."


def test_records_for_which_a_gpu_has_no_memory():
  line = advice.line(_stats(capacity=3, kept_on_host=2), _STEP)
  assert " A GPU had no memory for 2 records, which steps copied, so the stage holds at most 3. Steps waited" in line
  assert "A GPU" not in advice.line(_stats(), _STEP)


def test_bytes_on_gpus():
  line = _line(_stats(device_bytes={"GPU:1": _MIB // 2, "GPU:0": _MIB}))
  assert " in the buffer (1.5 MiB, 1.0 of them on GPU:0, 0.5 of them on GPU:1). " in line


def test_a_buffer_that_fills_slowly():
  assert "records/s, 1 of 4 (later 40) in the buffer (1.5 MiB)." in _line(_stats(capacity=40, room=4))


def _period(step_waits=0.0, producer_waits=0.0, busy=0.5, region_ms=5.0, rate=10.0, own=None) -> period_lib.Period:
  return period_lib.Period(
      records_per_second=rate, step_waits=step_waits, producer_waits=producer_waits, steps=100, step_seconds=10e-3,
      wait_seconds=10e-3 * step_waits, region_seconds=region_ms / 1000, cores_busy=busy, own_busy=own)


# What limits.
_STEP = _period(step_waits=0.04)
_STEP_ALONE = _period(producer_waits=0.9)
_SLOWER = _period(step_waits=0.2)
_VARYING = _period(step_waits=0.2, producer_waits=0.3)
_BUSY = _period(step_waits=0.2, busy=0.95)
_BUSY_VARYING = _period(step_waits=0.2, producer_waits=0.3, busy=0.95)

# What the stage chooses by itself, and whether it has settled.
_FIXED = dict(threads=4, capacity=8)
_THREADS = dict(threads=4, capacity=8, tunes_threads=True)
_THREADS_SETTLED = dict(_THREADS, threads_settled=True)
_CAPACITY = dict(threads=4, capacity=8, autotune=True, capacity_bytes=512 * _MIB)
_CAPACITY_SETTLED = dict(_CAPACITY, capacity_settled=True)
_CAPACITY_FULL = dict(_CAPACITY_SETTLED, capacity_bytes=2 * _MIB)
_BOTH = dict(_CAPACITY, tunes_threads=True)
_BOTH_CAPACITY_SETTLED = dict(_BOTH, capacity_settled=True)
_BOTH_SETTLED = dict(_BOTH_CAPACITY_SETTLED, threads_settled=True)
_ALL = (
    _FIXED, _THREADS, _THREADS_SETTLED, _CAPACITY, _CAPACITY_SETTLED, _CAPACITY_FULL, _BOTH, _BOTH_CAPACITY_SETTLED,
    _BOTH_SETTLED)

_NOTHING = "the step hardly waits; nothing to change."
_HARDLY_WAITS = (
    "the step hardly waits, but what runs beside it slows it; only a run without the stage shows whether it gains"
    " anything: `python -m tensorflow.staging compare` for SmartStage, or the time of a step without it.")
_COMPUTES = "the cores are 95% busy, so no setting helps; give the program more cores, or less to compute."
_RAISE_THREADS = (
    "the stage is slower than the step; raise num_threads (now 4), or let the stage choose with tf.data.AUTOTUNE. If"
    " what it reads is the limit, only a quicker source helps.")
_TRIES = (
    "the stage is slower than the step, and still tries how many producers help (now 4); wait until it has settled.")
_SOURCE = (
    "more producers than 4 gain nothing, although cores are idle, so what they read is the limit; speed up its storage,"
    " or its dataset with num_parallel_calls.")
_RAISE_CAPACITY = (
    "the times of steps and records vary; raise capacity (now 8), or let the stage choose with tf.data.AUTOTUNE.")
_ADAPTS = (
    "the times of steps and records vary, and the buffer still adapts its capacity (now 8); wait until it has settled.")
_HAS_TRIED = (
    "the stage was slower than the step, and had not found out how many producers help (4 at the end); train longer to"
    " let it settle.")
_HAS_ADAPTED = (
    "the times of steps and records vary, and the buffer had not found its capacity (8 at the end); train longer to let"
    " it settle.")

_TABLE = [
    *((stage, period, _NOTHING) for stage, period in itertools.product(_ALL, (_STEP, _STEP_ALONE))),
    *((stage, _period(busy=0.95), _HARDLY_WAITS) for stage in _ALL),
    *((stage, period, _COMPUTES) for stage, period in itertools.product(_ALL, (_BUSY, _BUSY_VARYING))),
    (_FIXED, _SLOWER, _RAISE_THREADS),
    (_CAPACITY, _SLOWER, _RAISE_THREADS),
    (_CAPACITY_SETTLED, _SLOWER, _RAISE_THREADS),
    (_THREADS, _SLOWER, _TRIES),
    (_BOTH, _SLOWER, _TRIES),
    (_BOTH_CAPACITY_SETTLED, _SLOWER, _TRIES),
    (_THREADS_SETTLED, _SLOWER, _SOURCE),
    (_BOTH_SETTLED, _SLOWER, _SOURCE),
    (_FIXED, _VARYING, _RAISE_CAPACITY),
    (_THREADS, _VARYING, _RAISE_CAPACITY),
    (_THREADS_SETTLED, _VARYING, _RAISE_CAPACITY),
    (_CAPACITY, _VARYING, _ADAPTS),
    (_BOTH, _VARYING, _ADAPTS),
    (_CAPACITY_SETTLED, _VARYING,
     "the times of steps and records vary, and more capacity than 8 gains nothing; raise num_threads (now 4), or let"
     " the stage choose with tf.data.AUTOTUNE."),
    (_CAPACITY_FULL, _VARYING,
     "the times of steps and records vary, and the buffer is full; raise capacity_bytes (now 2 MiB)."),
    (dict(_CAPACITY_SETTLED, device_capacity_bytes=_MIB, device_bytes={"GPU:0": _MIB}), _VARYING,
     "the times of steps and records vary, and the buffer is full; raise device_capacity_bytes (now 1 MiB)."),
    (_BOTH_CAPACITY_SETTLED, _VARYING,
     "the times of steps and records vary, and the stage still tries how many producers help (now 4); wait until it has"
     " settled."),
    (_BOTH_SETTLED, _VARYING,
     "the times of steps and records vary, and neither more capacity than 8 nor more producers than 4 gain anything;"
     " nothing to change."),
    (dict(_CAPACITY, capacity=3, kept_on_host=2), _VARYING,
     "the times of steps and records vary, and a GPU has no memory for more records than 3; a smaller batch or model"
     " leaves more."),
    (dict(_FIXED, room=4), _VARYING,
     "the times of steps and records vary, and the buffer still grows to its capacity; wait until it has"
     " settled."),
    (_FIXED, period_lib.Period(10.0, 0.0, 0.0, steps=3, cores_busy=0.95), "the step hardly waits, so far."),
    (_FIXED, _period(region_ms=0.05),
     "hardly anything runs ahead; tf.staging.explain says why not more."),
    (dict(_FIXED, waiting_takes=1), _period(rate=0.0),
     "a step waits, and no record has come; the input of the stage is slow, or hangs."),
    (dict(_FIXED, error="OUT_OF_RANGE: Stage 'prefetch' has reached the end of its data."), _SLOWER,
     "the data has ended."),
    (dict(_FIXED, error="DATA_LOSS: bad record"), _SLOWER, "the stage has ended (DATA_LOSS: bad record)"),
]


@pytest.mark.parametrize("stage,period,expected", _TABLE)
def test_the_advice(stage, period, expected):
  assert advice.advice(_stats(**stage), period) == expected


@pytest.mark.parametrize("period", [_STEP, _STEP_ALONE, _SLOWER, _VARYING, _BUSY, _BUSY_VARYING])
@pytest.mark.parametrize("stage", _ALL)
def test_it_never_advises_what_the_stage_does_by_itself(stage, period):
  advised = advice.advice(_stats(**stage), period)
  assert not (stage.get("tunes_threads") and "raise num_threads" in advised)
  assert not (stage.get("autotune") and "raise capacity (" in advised)
  assert not (stage.get("tunes_threads") and stage.get("autotune") and "AUTOTUNE" in advised)


@pytest.mark.parametrize("period,expected", [
    (_period(step_waits=0.2, busy=0.95, own=0.9), _COMPUTES),
    (_period(step_waits=0.2, busy=0.95, own=0.1),
     "the cores are 95% busy, mostly with other programs; run this one with fewer beside it, and look again."),
])
def test_the_advice_says_whose_work_keeps_the_cores_busy(period, expected):
  assert advice.advice(_stats(**_FIXED), period) == expected


@pytest.mark.parametrize("stage,keeps_order,warns", [
    (dict(threads=1), True, False),
    (dict(threads=4), True, False),
    # What a server's stage, or deterministic=False, has.
    (dict(threads=1, orders_threads=False), True, True),
    (dict(threads=4, orders_threads=False), False, False),
])
def test_the_line_says_when_records_lose_their_order(stage, keeps_order, warns):
  line = advice.line(_stats(**stage), _SLOWER)
  assert "raise num_threads" in line
  assert (" records/s, in any order, " not in line) == keeps_order
  assert ("tf.data.AUTOTUNE, if records may come in another order." in line) == warns


def test_no_advice_before_the_first_record():
  assert advice.advice(_stats(taken=0), _STEP) == "no step has taken a record yet."


@pytest.mark.parametrize("stage,period,expected", [
    (_FIXED, _STEP, _NOTHING),
    (_FIXED, _SLOWER, _RAISE_THREADS),
    # The end of the data is no news, and its stage has nothing more to settle.
    (dict(_FIXED, error="OUT_OF_RANGE: end"), _STEP, _NOTHING),
    (_THREADS, _SLOWER, _HAS_TRIED),
    (_CAPACITY, _VARYING, _HAS_ADAPTED),
    (_BOTH_CAPACITY_SETTLED, _VARYING,
     "the times of steps and records vary, and the stage had not found out how many producers help (4 at the end);"
     " train longer to let it settle."),
    (dict(_FIXED, room=4), _VARYING,
     "the times of steps and records vary, and the buffer had not grown to its capacity; train longer to let it"
     " settle."),
    (_FIXED, period_lib.Period(10.0, 0.0, 0.0, steps=3), ""),
])
def test_the_advice_at_the_end(stage, period, expected):
  assert advice.at_the_end(_stats(**stage), period) == expected


@pytest.mark.parametrize("stage,period,expected", [
    (_THREADS, _SLOWER, _HAS_TRIED),
    (dict(_THREADS, threads=0), _SLOWER, _HAS_TRIED.replace(" (4 at the end)", "")),
    (_CAPACITY, _VARYING, _HAS_ADAPTED),
    (dict(taken=0), _STEP, "it has ended, and no step has taken a record."),
])
def test_a_stage_that_has_ended_does_nothing_more(stage, period, expected):
  assert advice.advice(_stats(**stage, running=False), period) == expected


def test_a_step_that_waits_all_the_time():
  waits = _stats(taken=7, waiting_takes=1)
  advised = "a step waits, and no record has come; the input of the stage is slow, or hangs."
  end = f" of the time; the stage was ahead of them, with nothing to do, 0% of the time: {advised}"
  # When the wait began is unknown in its first period.
  assert _line(waits, _stats(taken=7)).endswith("Steps waited for records 0%" + end)
  assert _line(waits, waits).endswith("Steps waited for records 100%" + end)
  assert advised not in _line(_stats(taken=8, waiting_takes=1), waits)
