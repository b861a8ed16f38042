# SPDX-License-Identifier: Apache-2.0
"""What the stages of a session have done and gained, once they have ended."""

from tensorflow.python.client import session as session_lib

from tensorflow_staging.python.session import all_sessions
from tensorflow_staging.python.stats import counted_stages
from tensorflow_staging.python.stats import ended_stages


def log(session: session_lib.BaseSession) -> None:
  """Logs a line about each stage that has ended in a session, with the level INFO.

  Args:
    session: A session whose stages have just been stopped.
  """
  ended_stages.log_stages(of_ended(session))


def of_ended(session: session_lib.BaseSession) -> list[counted_stages.StageStats]:
  """Returns the last statistics of the stages that have ended in a session and of which steps have taken records."""
  return [stage for stage in counted_stages.stages_of(all_sessions.ended(session) or ()) if stage.taken > 0]
