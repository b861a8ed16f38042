# SPDX-License-Identifier: Apache-2.0
"""What a program may give whose stage has several producers: each record once, in any order."""

from __future__ import annotations

from collections.abc import Iterable

from tensorflow_staging.python.testing.histories import iterator_model
from tensorflow_staging.python.testing.histories import oracle
from tensorflow_staging.python.testing.histories import outcomes
from tensorflow_staging.python.testing.histories import plain_model
from tensorflow_staging.python.testing.histories import programs

# The positions that are left, and the data.
_Left = tuple[frozenset[int], iterator_model.Data]


class UnorderedOracle:
  """The elements of the only source that nothing has got. Each makes one record."""

  holds_positions = False

  def __init__(self, program: programs.Program):
    """Begins without data.

    Args:
      program: The program. Each of its steps reads one element.
    """
    self._program = program
    self._model = plain_model.PlainModel(program)
    self.new_session()

  def new_session(self) -> None:
    """A new session knows no data."""
    self._left: frozenset[int] = frozenset()
    self._data = iterator_model.Data(0, 0)

  def save(self) -> _Left:
    """Returns what a checkpoint has."""
    return self._left, self._data

  def initialise(self, names: Iterable[str], data: iterator_model.Data) -> None:
    """Gives the source data."""
    del names
    self._data, self._left = data, frozenset(range(data.length))

  def restore(self, names: Iterable[str], saved: _Left) -> None:
    """Restores the source from a checkpoint."""
    del names
    self._left, self._data = saved

  def step(self, got: outcomes.Outcome) -> None:
    """Checks what a step got."""
    self._see(got, self._records(), "a step")

  def read_beside(self, name: str, got: outcomes.Outcome) -> None:
    """Checks what a read beside the steps got."""
    self._see(got, {position: self._data.outcome(0, position) for position in self._left}, f"a read of {name}")

  def _records(self) -> dict[int, outcomes.Outcome]:
    """What steps get of the positions that are left and not ignored."""
    records = {}
    for position in self._left:
      outcome = self._model.only_outcome(plain_model.State((iterator_model.Iterator(0, self._data, position),)))
      if not self._program.ignored(outcome):
        records[position] = outcome
    return records

  def _see(self, got: outcomes.Outcome, possible: dict[int, outcomes.Outcome], what: str) -> None:
    if got == outcomes.END and not self._records():
      self._left = frozenset()
      return
    at = [position for position, outcome in possible.items() if outcome == got]
    if not at:
      raise oracle.Difference(f"{what} got {got}, and left were {possible or 'none'}")
    self._left -= {at[0]}
