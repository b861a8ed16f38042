# SPDX-License-Identifier: Apache-2.0
"""What a stage has done and gained, once it has ended: so a training too short for a report says it, too."""

from collections.abc import Iterable

from tensorflow.python.platform import tf_logging

from tensorflow_staging.python.ahead import ahead
from tensorflow_staging.python.stats import advice
from tensorflow_staging.python.stats import counted_stages
from tensorflow_staging.python.stats import period as period_lib


def log_stages(stages: Iterable[counted_stages.StageStats]) -> None:
  """Logs a line about each of some stages that have ended, with the level INFO, and warns of records that were lost."""
  for stage in stages:
    tf_logging.info("%s", line(stage))
    if losses := advice.lost(stage):
      tf_logging.warning("Stage '%s' has ended. %s", stage.name, losses)


def of_steps(steps: Iterable[ahead.AheadStep]) -> list[counted_stages.StageStats]:
  """Returns the statistics of the steps that have taken records."""
  return [stage for stage in counted_stages.in_all(steps) if stage.taken > 0]


def line(stage: counted_stages.StageStats) -> str:
  """Returns what a stage has done and gained, and what to do next, in sentences."""
  records = f"{stage.taken:,} record{'' if stage.taken == 1 else 's'}"
  advised = advice.at_the_end(stage, period_lib.Period.of_life(stage))
  return " ".join(filter(None, [
      f"Stage '{stage.name}' has ended after {records}: it {stage.gain}.", advised[:1].upper() + advised[1:]]))
