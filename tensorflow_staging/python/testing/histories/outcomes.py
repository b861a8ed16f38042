# SPDX-License-Identifier: Apache-2.0
"""What a read of an iterator gives, and what a step does: an element or a record, the end of the data, or an error."""

from __future__ import annotations

from typing import NamedTuple
from typing import Union

# An element says of which source, of which of its data and at which position it is.
POSITIONS = 100
_BASES = 1000
# Larger than every element, so that two of them fit into one number.
MANY = 1000000

# Stands in a record for a read that was left out.
NOTHING = -1

INVALID = "InvalidArgumentError"
MISSING = "NotFoundError"
UNINITIALISED = "FailedPreconditionError"


class End(NamedTuple):
  """The end of the data."""


class Error(NamedTuple):
  """An error.

  Attributes:
    code: The name of its class.
    text: What its message has to contain: whether a source or a region has failed, and at which element.
  """

  code: str
  text: str


END = End()

Record = tuple[int, ...]
Outcome = Union[int, Record, End, Error]


def element(source: int, base: int, position: int) -> int:
  """Returns an element.

  Args:
    source: The number of its source.
    base: The number of the data that the source has got.
    position: Its place in these.
  """
  return (source * _BASES + base) * POSITIONS + position


def failed(outcome: Outcome) -> bool:
  """Whether this is no element and no record."""
  return isinstance(outcome, (End, Error))
