# SPDX-License-Identifier: Apache-2.0
"""The environment variable that turns SmartStage on or off in all sessions and fits of a program and of its child
processes."""

import enum
import os

from tensorflow.core.protobuf import config_pb2

VARIABLE = "TF_STAGING_SMART_STAGE"
# The environment variable in which `compare` says what to measure.
COMPARE_VARIABLE = "TF_STAGING_COMPARE"


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
        f"The environment variable {VARIABLE} is {value!r}; allowed are '1', which turns SmartStage on in all sessions"
        " and in each fit of Keras, and 'off', which turns it off.") from None


def applied_to(config: config_pb2.ConfigProto) -> config_pb2.ConfigProto:
  """Returns what the environment makes of the configuration of a session: `config` itself if it changes nothing.

  Raises:
    ValueError: As `current`.
  """
  chosen = current()
  options = config.graph_options.optimizer_options
  turns_on = (
      chosen == Setting.ON and not options.do_smart_stage
      # The rest of the graph of such a session may have nodes that cannot be placed.
      and not config.graph_options.place_pruned_graph)
  turns_off = chosen == Setting.OFF and (options.do_smart_stage or options.do_async_embedding)
  if not turns_on and not turns_off:
    return config
  changed = config_pb2.ConfigProto()
  changed.CopyFrom(config)
  options = changed.graph_options.optimizer_options
  options.do_smart_stage = turns_on
  options.do_async_embedding = options.do_async_embedding and turns_on
  return changed
