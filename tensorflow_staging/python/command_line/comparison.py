# SPDX-License-Identifier: Apache-2.0
"""What rounds of steps without and with SmartStage say: a ratio with its interval, and why it is what it is."""

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import Optional

from tensorflow_staging.python import api_name
from tensorflow_staging.python.automatic import measured_run
from tensorflow_staging.python.stats import gain

# The 97.5 % quantiles of Student's t-distribution, by degrees of freedom from 1 on.
_QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
              2.120, 2.110, 2.101, 2.093)
MOST_ROUNDS = len(_QUANTILES) + 1
# An interval whose upper end is so many times its lower end says nothing.
_WIDE = 10


@dataclasses.dataclass(frozen=True)
class Round:
  """A run without and one with SmartStage, one after the other."""

  without: measured_run.Result
  with_stages: measured_run.Result

  def ratio(self) -> float:
    """How many times as fast steps are with SmartStage."""
    return step_seconds(self.without) / step_seconds(self.with_stages)


def step_seconds(result: measured_run.Result) -> float:
  """How long a step took."""
  return result.seconds / result.steps


def interval(ratios: Sequence[float]) -> tuple[float, float, float]:
  """Returns the mean of some ratios, at least two, and the ends of its 95 % interval.

  The logarithms of the ratios are averaged, so that it makes no difference which of the two is above the line.
  """
  logs = [math.log(ratio) for ratio in ratios]
  mean = statistics.fmean(logs)
  half = _QUANTILES[len(logs) - 2] * statistics.stdev(logs) / math.sqrt(len(logs))
  return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def report(rounds: Sequence[Round]) -> str:
  """Returns what some rounds, at least two, say, in lines."""
  mean, low, high = interval([each.ratio() for each in rounds])
  busy = _mean_busy([each.without for each in rounds])
  stages = rounds[-1].with_stages.stages
  # Then the verdict says what to do.
  is_busy = busy is not None and busy >= gain.BUSY
  busy_text = "" if busy is None else f"; the cores were {busy:.0%} busy"
  lines = [
      f"without SmartStage: {_median_ms([each.without for each in rounds]):.2f} ms a step{busy_text}",
      f"with SmartStage:    {_median_ms([each.with_stages for each in rounds]):.2f} ms a step",
      *(f"    Stage '{name}' {done}{f': {advised}' if advised and not is_busy else '.'}"
        for name, done, advised in stages),
      f"{mean:.2f} times as fast with SmartStage, over the rounds ({_scatter(rounds, low, high)})",
      verdict(low, high, busy, rounds[-1].with_stages.is_fit),
  ]
  return "\n".join(lines)


def _scatter(rounds: Sequence[Round], low: float, high: float) -> str:
  """Says how far the ratio can be trusted, with the ends of its interval."""
  if high <= _WIDE * low:
    return f"{low:.2f} to {high:.2f}, the 95% interval of {len(rounds)} rounds"
  ratios = [each.ratio() for each in rounds]
  return (
      f"{min(ratios):.2f} to {max(ratios):.2f} in {len(rounds)} rounds, which are too few, or differ too much, for a"
      " 95% interval")


def what_says_why(is_fit: bool) -> str:
  """Returns a sentence on what in the program says why not more runs ahead.

  Args:
    is_fit: Whether its steps are those of Keras's `fit`, and not runs of a session.
  """
  if is_fit:
    return (
        f"A line print({api_name.API}.explain(callback)) in the program, after a fit with callback ="
        f" {api_name.API}.SmartStage(), says why.")
  return f"A line print({api_name.API}.explain(graph)) in the program, after it has built its graph, says why."


def verdict(low: float, high: float, busy: Optional[float], is_fit: bool = False) -> str:
  """Says in one line what an interval of ratios means, and what to do next.

  Args:
    low: The lower end.
    high: The upper end.
    busy: Which part of the time the cores were busy without a stage, from 0 to 1; None if that is unknown.
    is_fit: Whether the steps were those of Keras's `fit`, and not runs of a session.
  """
  explain = f"print({api_name.API}.explain({'callback' if is_fit else 'graph'}))"
  if low > 1:
    by_hand = f"give fit callbacks=[{api_name.API}.SmartStage()]" if is_fit else (
        "set config.graph_options.optimizer_options.do_smart_stage = True and give the session"
        " hooks=[tf.make_prefetch_hook()]")
    return f"A gain. To keep it, start the program with `{api_name.PROGRAM} run`, or {by_hand}."
  if busy is not None and busy >= gain.BUSY:
    kind, more = ("A loss", "") if high < 1 else ("No clear gain", ", or measure more --rounds")
    return (
        f"{kind}: a stage uses idle cores, and they were {busy:.0%} busy without one. Give the program more cores, run"
        f" nothing else beside it{more}.")
  if high < 1:
    return (
        f"A loss, although cores were idle. {explain} in the program says what runs ahead; leave"
        " SmartStage off if it stays so with more --rounds.")
  return (
      "No clear gain. More --rounds or --steps make the interval narrower; the line of the stage says what limits it,"
      f" and {explain} in the program what runs ahead, and why not more.")


def _median_ms(results: Sequence[measured_run.Result]) -> float:
  return 1000 * statistics.median(step_seconds(result) for result in results)


def _mean_busy(results: Sequence[measured_run.Result]) -> Optional[float]:
  parts = [result.cores_busy for result in results if result.cores_busy is not None]
  return statistics.fmean(parts) if parts else None
