# SPDX-License-Identifier: Apache-2.0
"""Rounds without and with SmartStage give a ratio with its interval, and a sentence that follows from both."""

import pytest

from tensorflow_staging.python.automatic import measured_run
from tensorflow_staging.python.command_line import comparison


def _round(without, with_stages, busy=0.5):
  """A round whose steps take so many milliseconds."""

  def result(millis, stages):
    return measured_run.Result(seen=150, steps=100, seconds=millis / 10, cores_busy=busy, stages=stages)

  stages = [
      ("prefetch", "made its records ahead", "the step hardly waits; nothing to change."), ("short", "ran", "")]
  return comparison.Round(result(without, []), result(with_stages, stages))


def test_the_interval_of_equal_ratios_is_a_point():
  assert comparison.interval([1.5, 1.5, 1.5]) == pytest.approx((1.5, 1.5, 1.5))


def test_the_interval_is_that_of_students_distribution():
  # Logarithms of -1, 0 and 1: the mean is 0, and half of the interval 4.303 times 1 / sqrt(3).
  mean, low, high = comparison.interval([2.718281828459045**power for power in (-1, 0, 1)])
  assert mean == pytest.approx(1)
  assert high == pytest.approx(2.718281828459045**(4.303 / 3**0.5))
  assert low == pytest.approx(1 / high)


def test_the_report():
  text = comparison.report([_round(9, 6), _round(10, 6.5), _round(9.2, 6.1)])
  assert text.splitlines() == [
      "without SmartStage: 9.20 ms a step; the cores were 50% busy",
      "with SmartStage:    6.10 ms a step",
      "    Stage 'prefetch' made its records ahead: the step hardly waits; nothing to change.",
      "    Stage 'short' ran.",
      "1.52 times as fast with SmartStage, over the rounds (1.47 to 1.57, the 95% interval of 3 rounds)",
      "A gain. To keep it, start the program with `python -m tensorflow.staging run`, or set"
      " config.graph_options.optimizer_options.do_smart_stage = True and give the session"
      " hooks=[tf.make_prefetch_hook()].",
  ]


def test_rounds_that_differ_much_have_no_interval():
  text = comparison.report([_round(9, 3), _round(9, 9)])
  assert (
      "1.73 times as fast with SmartStage, over the rounds (1.00 to 3.00 in 2 rounds, which are too few, or differ too"
      " much, for a 95% interval)") in text
  assert text.splitlines()[-1].startswith("No clear gain. More --rounds")


def test_where_cores_are_busy_the_verdict_alone_advises():
  text = comparison.report([_round(9, 6, 0.95), _round(10, 6.5, 0.95)])
  assert "    Stage 'prefetch' made its records ahead.\n" in text


@pytest.mark.parametrize("low,high,busy,expected", [
    (1.1, 1.2, 0.5, "A gain. To keep it, "),
    (1.1, 1.2, 0.97, "A gain. To keep it, "),
    (0.9, 1.2, 0.97, "No clear gain: a stage uses idle cores, and they were 97% busy without one."),
    (0.8, 0.9, 0.97, "A loss: a stage uses idle cores, and they were 97% busy without one."),
    (0.8, 0.9, 0.5, "A loss, although cores were idle."),
    (0.9, 1.2, 0.5, "No clear gain. More --rounds or --steps make the interval narrower;"),
    (0.9, 1.2, None, "No clear gain. More --rounds or --steps make the interval narrower;"),
])
def test_the_verdict(low, high, busy, expected):
  assert comparison.verdict(low, high, busy).startswith(expected)


@pytest.mark.parametrize("low, high, expected", [
    (1.1, 1.2, "give fit callbacks=[tf.staging.SmartStage()]."),
    (0.8, 0.9, "print(tf.staging.explain(callback))"), (0.9, 1.2, "print(tf.staging.explain(callback))")])
def test_the_verdict_on_a_fit_has_no_remedy_of_sessions(low, high, expected):
  verdict = comparison.verdict(low, high, 0.5, is_fit=True)
  assert expected in verdict
  assert not any(word in verdict for word in ("do_smart_stage", "hook", "graph", "session"))


def test_there_is_a_quantile_for_each_number_of_rounds():
  for rounds in range(2, comparison.MOST_ROUNDS + 1):
    assert comparison.interval([1.0, 2.0] + [1.5] * (rounds - 2))[1] > 0
