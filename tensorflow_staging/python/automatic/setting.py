# SPDX-License-Identifier: Apache-2.0
"""The environment variable that turns SmartStage on or off in all sessions of a program and of its child processes."""

import enum
import os

VARIABLE = "TF_STAGING_SMART_STAGE"


class Setting(enum.Enum):
  """What the environment says of SmartStage; the values are those of the variable."""

  # Each session has it, unless the program itself has turned it on with its own options.
  ON = "1"
  # No session has it, whatever the program says.
  OFF = "off"
  # The program decides.
  UNSET = ""


def current() -> Setting:
  """Returns what the environment says now.

  Raises:
    ValueError: If the variable has another value.
  """
  value = os.environ.get(VARIABLE, "")
  try:
    return Setting(value)
  except ValueError:
    raise ValueError(
        f"The environment variable {VARIABLE} is {value!r}; allowed are '1', which turns SmartStage on in all sessions,"
        " and 'off', which turns it off.") from None
