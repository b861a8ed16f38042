# SPDX-License-Identifier: Apache-2.0
"""What happens to a program: a history is a list of operations."""

from __future__ import annotations

import dataclasses
import enum

from tensorflow_staging.python.testing.histories import iterator_model


class Kind(enum.Enum):
  """What an operation does."""

  # A session of its own, or new iterators, with another layout. What the old one has read ahead is gone.
  NEW_SESSION = "new session"
  # Some steps.
  STEP = "step"
  # Steps up to the end of the data.
  FINISH = "finish"
  INITIALISE = "initialise"
  # An initialiser that fails before it has changed anything.
  INITIALISE_IN_VAIN = "initialise in vain"
  # After a restore, an initialiser with the same data.
  INITIALISE_AGAIN = "initialise again"
  # A save, during which some steps may run.
  SAVE = "save"
  RESTORE = "restore"
  # Something else than the steps reads a source.
  READ_BESIDE = "read beside"
  STOP = "stop"
  START = "start"
  # What waits is made again.
  DISCARD = "discard"
  # The program does something else for a while.
  WAIT = "wait"


@dataclasses.dataclass(frozen=True)
class Operation:
  """An operation.

  Attributes:
    kind: What it does.
    names: With which sources.
    count: How many steps it has, or how long it is. Any number where neither is the case: a driver may do the same in
      several ways.
    data: What sources get.
    age: How many saves ago the checkpoint was written.
    layout: The number of the layout.
  """

  kind: Kind
  names: tuple[str, ...] = ()
  count: int = 0
  data: iterator_model.Data | None = None
  age: int = 0
  layout: int = 0

  def __str__(self) -> str:
    fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)[1:]}
    return " ".join([self.kind.value, *(f"{name}={value}" for name, value in fields.items() if value)])
