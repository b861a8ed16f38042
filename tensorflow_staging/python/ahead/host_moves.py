# SPDX-License-Identifier: Apache-2.0
"""Decides whether a strategy's iterators move to the host: only where a step can be divided for them then."""

from collections.abc import Callable
from typing import Any

from tensorflow_staging.python.ahead import host_iterators
from tensorflow_staging.python.ahead import step_division
from tensorflow_staging.python.ahead import strategy_iterators

_NO_HOST_TRACE = "it cannot be traced for an iterator of a strategy that yields its elements on the host"
_READ_BEFORE = "something has read its iterator before, which holds elements in the memory of a GPU"

# The attribute of an iterator of a strategy that has why it yields its elements on a GPU.
_WHY_NOT_MOVED = "_staging_why_not_moved"


def move_if_divisible(elsewhere: list[Any], divide: Callable[[], Any]) -> str:
  """Lets iterators of a strategy yield their elements on the host, if a step can be divided then.

  Args:
    elsewhere: Those that do not yield them there, or have not until now.
    divide: Divides the step for the iterators as they are when it is called. Other errors than those that say that it
      cannot be divided are raised, and the iterators stay on the host.

  Returns:
    Why they have not moved; an empty string if they have.
  """
  why_not = next((known for value in elsewhere if (known := getattr(value, _WHY_NOT_MOVED, ""))), "")
  if why_not or all(map(strategy_iterators.are_on_host, elsewhere)):
    return why_not
  moves = [host_iterators.move(value) for value in elsewhere]
  try:
    if None in moves:
      raise step_division.NotStagedError(_READ_BEFORE)
    divide()
  except (step_division.NotStagedError, TypeError, ValueError) as error:
    # Its signature may name the devices. The call without a stage raises its own error.
    why_not = str(error) if isinstance(error, step_division.NotStagedError) else _NO_HOST_TRACE
    for take_back in filter(None, moves):
      take_back()
    for value in elsewhere:
      setattr(value, _WHY_NOT_MOVED, why_not)
  return why_not
