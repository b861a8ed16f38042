# SPDX-License-Identifier: Apache-2.0
"""What a program prints whose sessions have SmartStage by the environment: a line at the start, and some at the end."""

import os

from tensorflow_staging.python import api_name
from tensorflow_staging.python.automatic import printed_line
from tensorflow_staging.python.automatic import setting
from tensorflow_staging.python.stats import counted_stages
from tensorflow_staging.python.stats import ended_stages

_IN_FITS = (
    f"SmartStage is on in every fit of this program, by {setting.VARIABLE}=1. {setting.VARIABLE}=off turns it off.")
# How many stages the end names.
_MOST_STAGES = 5

# There is no lock, which a signal handler might find the main thread holding: each operation is indivisible.
# By what was said, who has said it.
_said: dict[str, object] = {}
_ended: list[counted_stages.StageStats] = []


def say_it_is_on() -> None:
  """Says once a process that SmartStage is on, and how to turn it off."""
  _say_once(
      f"SmartStage is on in all sessions of this program, by {setting.VARIABLE}=1. {setting.VARIABLE}=off turns it"
      " off.")


def say_the_program_turns_it_on() -> None:
  """Says once a process that the program has SmartStage by its own settings, and how to turn it off."""
  _say_once(
      f"SmartStage is on in this program, with the program's own settings. {setting.VARIABLE}=off turns it off.")


def say_it_stays_off() -> None:
  """Says once a process that a session has no SmartStage, because it places pruned graphs."""
  _say_once(
      "SmartStage stays off in an InteractiveSession, and with graph_options.place_pruned_graph: such a session places"
      " only the nodes that it runs, and stages need the whole graph. Use a tf.Session to have SmartStage.")


def say_it_is_on_in_fits() -> None:
  """Says once a process that SmartStage is on in Keras's `fit`, and how to turn it off."""
  _say_once(_IN_FITS)


def say_it_is_off() -> None:
  """Says once a process that SmartStage is off although the program has turned it on."""
  _say_once(f"SmartStage is off, although the program turns it on, by {setting.VARIABLE}=off.")


def note_ended(stages: list[counted_stages.StageStats]) -> None:
  """Notes stages that have ended, for the end of the program."""
  _ended.extend(stages)


def say_what_it_gained() -> None:
  """Says what the stages have gained that have ended since the process began, or why there was none."""
  stages = list(_ended)
  if not stages:
    printed_line.say(f"SmartStage has found nothing to run ahead: {_why_none()}")
  # Those with the most records, in the order in which they ended.
  most = sorted(range(len(stages)), key=lambda index: -stages[index].taken)[:_MOST_STAGES]
  for index in sorted(most):
    printed_line.say(ended_stages.line(stages[index]))
  if len(stages) > _MOST_STAGES:
    printed_line.say(f"{len(stages) - _MOST_STAGES} more stages had fewer records.")


def _why_none() -> str:
  if _IN_FITS in _said:
    return f"the line 'runs without a stage' above, and {api_name.API}.explain of a callback, say why."
  return (
      "no session took records from an iterator, or all that follows one needs a variable. A line"
      f" print({api_name.API}.explain(graph)) in the program, after it has built its graph, says why.")


def _say_once(text: str) -> None:
  caller = object()
  if _said.setdefault(text, caller) is caller:
    printed_line.say(text)


def _forget() -> None:
  """In a forked child process, forgets what the parent has done."""
  _ended.clear()


os.register_at_fork(after_in_child=_forget)
