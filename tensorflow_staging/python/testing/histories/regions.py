# SPDX-License-Identifier: Apache-2.0
"""What a part of a step computes from what it reads."""

from __future__ import annotations

from collections.abc import Generator
from collections.abc import Sequence
from typing import NamedTuple

from tensorflow_staging.python.testing.histories import outcomes
from tensorflow_staging.python.testing.histories import programs


class Values(NamedTuple):
  """What a step has read so far.

  Attributes:
    record: What each op has read; two elements of one op are one number.
    total: The sum of the positions of all elements.
    last: The last element.
  """

  record: outcomes.Record = ()
  total: int = 0
  last: int = 0


# Yields the name of a source, and is sent what that gives. Returns the values afterwards, or why there are none.
Region = Generator[str, outcomes.Outcome, "Values | outcomes.Outcome"]


def run(ops: Sequence[programs.Op], values: Values) -> Region:
  """Computes some ops.

  Args:
    ops: The ops.
    values: What was read before them.
  """
  for op in ops:
    if isinstance(op, programs.Check):
      if values.total % op.divisor == 0:
        return outcomes.Error(op.code, f"region {values.last}")
      continue
    if op.only_if_even and values.total % 2:
      values = values._replace(record=(*values.record, outcomes.NOTHING))
      continue
    chosen = values.total
    read = 0
    for _ in range(op.times):
      outcome = yield op.names[(values.total if op.chooses_anew else chosen) % len(op.names)]
      if outcomes.failed(outcome):
        return outcome
      read = read * outcomes.MANY + outcome
      values = values._replace(total=values.total + outcome % outcomes.POSITIONS, last=outcome)
    values = values._replace(record=(*values.record, read))
  return values
