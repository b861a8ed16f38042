# SPDX-License-Identifier: Apache-2.0
"""Says what a stage gained, from what was measured.

Without a stage, a step would do by itself what runs ahead, and then the rest. So the stage hides from each step the
time of its region, but for what the step waits for its record. While cores are busy, the region and the step take
longer than they would alone, so what is hidden is then an upper bound.
"""

from typing import Optional

from tensorflow_staging.python.stats import period as period_lib

# From this part of the time on that cores are busy, a stage and a step slow each other.
BUSY = 0.9
# Fewer steps say little.
_ENOUGH_STEPS = 10
# Below this part of a step, what is hidden does not matter.
_MATTERS = 0.01


def hidden_seconds(period: period_lib.Period) -> Optional[float]:
  """Returns how much time of each step the stage hid; None if too little was measured to say."""
  if period.steps < _ENOUGH_STEPS or period.region_seconds is None:
    return None
  return max(0.0, period.region_seconds - period.wait_seconds)


def unstaged_seconds(period: period_lib.Period) -> Optional[float]:
  """Returns how long a step would take at most if it did by itself what runs ahead; None as for `hidden_seconds`."""
  if hidden_seconds(period) is None:
    return None
  return max(0.0, period.step_seconds - period.wait_seconds) + period.region_seconds


def is_little(period: period_lib.Period) -> bool:
  """Returns whether hardly anything runs ahead: it takes less than 1 % of a step."""
  unstaged = unstaged_seconds(period)
  return unstaged is not None and period.region_seconds < _MATTERS * unstaged


def hid(period: period_lib.Period) -> str:
  """Returns what the stage gained, as the part of a sentence whose subject is the stage."""
  hidden, unstaged = hidden_seconds(period), unstaged_seconds(period)
  if hidden is None and period.steps < _ENOUGH_STEPS:
    steps = f"{period.steps} step{'' if period.steps == 1 else 's'}"
    return f"ran for {steps}, too few to say what it gained; it takes {_ENOUGH_STEPS}"
  if hidden is None:
    return "has timed no record, so what it gained is unknown"
  if is_little(period):
    return f"had nothing to gain: what runs ahead takes less than 1% of a step of {_in_ms(unstaged, unstaged)} ms"
  if period.cores_busy is not None and period.cores_busy >= BUSY:
    return f"hid at most {_of(hidden, unstaged)} ms a step, since the cores were {period.cores_busy:.0%} busy"
  return f"hid about {_of(hidden, unstaged)} ms a step"


def sentence(period: period_lib.Period) -> str:
  """Returns one plain sentence, without its subject and its full stop, such as:

  hid about 3.1 of 9.0 ms a step; steps waited for records 1% of the time
  """
  if hidden_seconds(period) is None or is_little(period):
    return hid(period)
  return f"{hid(period)}; steps waited for records {period.step_waits:.0%} of the time"


def of_comparison(period: period_lib.Period) -> str:
  """Returns what a stage did, beside what steps took with and without it: in place of what it would estimate of these.

  It is a plain sentence as that of `sentence`.
  """
  if hidden_seconds(period) is None:
    return hid(period)
  if is_little(period):
    return "had nothing to gain: what runs ahead takes less than 1% of a step"
  return f"made its records ahead; steps waited for them {period.step_waits:.0%} of the time"


def _of(part: float, whole: float) -> str:
  return f"{_in_ms(part, whole)} of {_in_ms(whole, whole)}"


def _in_ms(seconds: float, whole: float) -> str:
  """Writes a time in milliseconds, with as many decimals as the time `whole` needs."""
  decimals = 0 if whole >= 1 else 1 if whole >= 1e-3 else 3
  return f"{seconds * 1000:.{decimals}f}"
