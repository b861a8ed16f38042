# SPDX-License-Identifier: Apache-2.0
"""What a stage has done and gained, once it has ended: so a training too short for a report says it, too."""

from collections.abc import Iterable

from tensorflow.python.client import session as session_lib
from tensorflow.python.platform import tf_logging

from tensorflow_staging.python.ahead import ahead
from tensorflow_staging.python.session import all_sessions
from tensorflow_staging.python.stats import advice
from tensorflow_staging.python.stats import period as period_lib
from tensorflow_staging.python.stats import stage_stats


def log(session: session_lib.BaseSession) -> None:
  """Logs a line about each stage that has ended in a session, with the level INFO.

  Args:
    session: A session whose stages have just been stopped.
  """
  log_stages(of_ended(session))


def log_stages(stages: Iterable[stage_stats.StageStats]) -> None:
  """Logs a line about each of some stages that have ended, with the level INFO, and warns of records that were lost."""
  for stage in stages:
    tf_logging.info("%s", line(stage))
    if losses := advice.lost(stage):
      tf_logging.warning("Stage '%s' has ended. %s", stage.name, losses)


def of_steps(steps: Iterable[ahead.AheadStep]) -> list[stage_stats.StageStats]:
  """Returns the statistics of the steps that have taken records, as `of_ended` does."""
  return [stage for stage in stage_stats.in_all(steps) if stage.taken > 0]


def of_ended(session: session_lib.BaseSession) -> list[stage_stats.StageStats]:
  """Returns the last statistics of the stages that have ended in a session and of which steps have taken records."""
  return [stage for stage in stage_stats.stages_of(all_sessions.ended(session) or ()) if stage.taken > 0]


def line(stage: stage_stats.StageStats) -> str:
  """Returns what a stage has done and gained, and what to do next, in sentences."""
  records = f"{stage.taken:,} record{'' if stage.taken == 1 else 's'}"
  advised = advice.at_the_end(stage, period_lib.Period.of_life(stage))
  return " ".join(filter(None, [
      f"Stage '{stage.name}' has ended after {records}: it {stage.gain}.", advised[:1].upper() + advised[1:]]))
