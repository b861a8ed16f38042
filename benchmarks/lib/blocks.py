# SPDX-License-Identifier: Apache-2.0
"""Measures steps in blocks, and several ways to run a step in blocks that take turns."""

from __future__ import annotations

import contextlib
import gc
import math
import statistics
import time
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

_LEAST_STEPS = 3
# A stage, and tf.data's own prefetch, hold a few records each when a block begins.
_LEAST_WARM_UP_STEPS = 8
_IDLE_PERIOD_SECONDS = 0.005
_IDLE_TRIALS = 200

# Runs one step.
Step = Callable[[], object]
# Opens what a step needs, and yields the step.
Open = Callable[[], contextlib.AbstractContextManager[Step]]


class Effort(NamedTuple):
  """How long to measure a way that is opened anew in each round."""

  warm_up_seconds: float
  seconds: float
  rounds: int


class Cost(NamedTuple):
  """What one step takes, as the mean of a block."""

  # From its begin to its end.
  seconds: float
  # Of all threads of the process.
  cpu_seconds: float


class Ratio(NamedTuple):
  """How many times as fast one way is as another, over all rounds."""

  median: float
  # With a probability of 95 %, the median of endlessly many rounds would be between these.
  low: float
  high: float


# The cost of each way in each round.
Rounds = Mapping[str, Sequence[Cost]]


def cost(step: Step, seconds: float, least_steps: int = _LEAST_STEPS) -> Cost:
  """Returns the mean cost of the steps that fit into `seconds`, of at least so many."""
  cpu = time.process_time()
  began = now = time.perf_counter()
  steps = 0
  while now - began < seconds or steps < least_steps:
    step()
    steps += 1
    now = time.perf_counter()
  return Cost((now - began) / steps, (time.process_time() - cpu) / steps)


def in_turns(
    steps: Mapping[str, Step],
    seconds: float,
    rounds: int,
    least_steps: int = _LEAST_STEPS,
) -> dict[str, list[Cost]]:
  """Measures several ways, which take turns in an order that alternates between rounds.

  Args:
    steps: The step of each way.
    seconds: How long to measure all of them together. A third of it warms up, also before each block, because a stage
      has filled its buffer while others were measured.
    rounds: How often each is measured.
    least_steps: How many steps a block has at least, however long they take.

  Returns:
    The cost of a step of each way in each round.
  """
  each = seconds / len(steps) / (rounds + 1)
  for step in steps.values():
    cost(step, each)
  result: dict[str, list[Cost]] = {name: [] for name in steps}
  for turn in range(rounds):
    for name, step in list(steps.items())[:: (-1) ** turn]:
      _wait_until_idle()
      cost(step, each / 3, _LEAST_WARM_UP_STEPS)
      result[name].append(cost(step, each * 2 / 3, least_steps))
  return result


def of_steps(steps: Mapping[str, Step], rounds: int, warm_up: int, measured: int) -> dict[str, list[Cost]]:
  """Measures several ways like `in_turns`, in blocks of so many steps, after so many that warm up."""
  result: dict[str, list[Cost]] = {name: [] for name in steps}
  for turn in range(rounds):
    for name, step in list(steps.items())[:: (-1) ** turn]:
      cost(step, 0, warm_up)
      result[name].append(cost(step, 0, measured))
  return result


def in_new_sessions(openers: Mapping[str, Open], effort: Effort) -> dict[str, list[Cost]]:
  """Measures several ways, each opened anew in each round, one at a time, in an order that alternates between rounds.

  Equal sessions of one process differ, and each keeps its speed for as long as it is open (results.md). So a
  ratio of two ways is known only over several sessions of each.

  Args:
    openers: Opens each way.
    effort: How long and how often each is measured.

  Returns:
    The cost of a step of each way in each round.
  """
  result: dict[str, list[Cost]] = {name: [] for name in openers}
  for turn in range(effort.rounds):
    for name, opener in list(openers.items())[:: (-1) ** turn]:
      with opener() as step:
        cost(step, effort.warm_up_seconds, _LEAST_WARM_UP_STEPS)
        result[name].append(cost(step, effort.seconds))
      # The graph of a session that was closed has cycles; its memory must not be freed while the next is measured.
      gc.collect()
  return result


def in_new_sessions_by_turns(
    openers: Mapping[str, Open],
    seconds: float,
    rounds: int,
    turns: int,
    least_steps: int,
) -> dict[str, list[Cost]]:
  """Measures several ways like `in_new_sessions`, but those of a round are open together, and take turns.

  Where a machine's speed drifts, ways that are measured within a second of each other can be told apart best.

  Args:
    openers: Opens each way.
    seconds: How long to measure all ways of a round together, as in `in_turns`.
    rounds: How often each way is opened.
    turns: How often each is measured in a round.
    least_steps: How many steps a turn has at least, however long they take.

  Returns:
    The cost of a step of each way in each round: the median of its turns.
  """
  result: dict[str, list[Cost]] = {name: [] for name in openers}
  for number in range(rounds):
    with contextlib.ExitStack() as stack:
      steps = {name: stack.enter_context(openers[name]()) for name in list(openers)[:: (-1) ** number]}
      for name, costs in in_turns(steps, seconds, turns, least_steps).items():
        result[name].append(median(costs))
    gc.collect()
  return result


def median(costs: Sequence[Cost]) -> Cost:
  """Returns the median of the seconds and that of the CPU seconds."""
  return Cost(*map(statistics.median, zip(*costs, strict=True)))


def ratio(rounds: Rounds, name: str, base: str) -> Ratio:
  """Returns how many times as fast a way is as the base."""
  return interval([there[0] / here[0] for there, here in zip(rounds[base], rounds[name], strict=True)])


def interval(values: Sequence[float]) -> Ratio:
  """Returns the median and its 95 % confidence interval, which needs no assumption on how the values are distributed.

  As many of n values are below the median of the distribution as heads fall in n throws of a coin, so the interval
  ends about half of 1.96 standard deviations of that number, sqrt(n) / 2, away from the middle (W. J. Conover,
  Practical Nonparametric Statistics, 1999, section 3.2). Of fewer than six values, both ends are always inside it.
  """
  ordered = sorted(values)
  count = len(ordered)
  low = max(0, math.floor(count / 2 - 1.96 * math.sqrt(count) / 2))
  return Ratio(statistics.median(ordered), ordered[low], ordered[count - 1 - low])


def _wait_until_idle() -> None:
  """Waits, for a second at most, until the stages of other ways have filled their buffers."""
  for _ in range(_IDLE_TRIALS):
    cpu = time.process_time()
    time.sleep(_IDLE_PERIOD_SECONDS)
    if time.process_time() - cpu < _IDLE_PERIOD_SECONDS / 5:
      return
