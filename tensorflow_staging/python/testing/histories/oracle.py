# SPDX-License-Identifier: Apache-2.0
"""What a program with stages may give: what one without a stage gives.

A join leaves open from which source a record comes, and a save while steps run leaves open before which of them it
came. So an oracle keeps every state that is possible, and what steps get rules out those that do not agree with it.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence

from tensorflow_staging.python.testing.histories import iterator_model
from tensorflow_staging.python.testing.histories import outcomes
from tensorflow_staging.python.testing.histories import plain_model
from tensorflow_staging.python.testing.histories import programs

States = frozenset[plain_model.State]


class Difference(AssertionError):
  """A program with stages did what it would not have done without them."""


class Oracle:
  """The possible states of a program without a stage."""

  def __init__(self, program: programs.Program):
    """Begins with iterators that have no data.

    Args:
      program: The program.
    """
    self._model = plain_model.PlainModel(program)
    self.new_session()

  def new_session(self) -> None:
    """A new session knows no data."""
    self._states: States = frozenset([self._model.new_session()])

  def save(self) -> States:
    """Returns what a checkpoint has."""
    return self._states

  @property
  def holds_positions(self) -> bool:
    """Whether an initialiser may go on at a restored position."""
    return any(state.held for state in self._states)

  def initialise(self, names: Iterable[str], data: iterator_model.Data) -> None:
    """Gives sources data.

    Args:
      names: The sources.
      data: The data.
    """
    self._states = frozenset(self._model.initialise(state, names, data) for state in self._states)

  def restore(self, names: Iterable[str], saved: States) -> None:
    """Restores sources from a checkpoint.

    Args:
      names: The sources.
      saved: What `save` has returned.
    """
    self._states = frozenset(self._model.restore(state, names, of) for state in self._states for of in saved)

  def step(self, got: outcomes.Outcome) -> None:
    """Checks what a step got.

    Args:
      got: What it got.
    """
    self._see(got, lambda state: self._model.steps(state), "a step")

  def read_beside(self, name: str, got: outcomes.Outcome) -> None:
    """Checks what a read beside the steps got.

    Args:
      name: The source.
      got: What it gave.
    """
    self._see(got, lambda state: [self._model.read(state, name)], f"a read of {name} beside the steps")

  def _see(
      self, got: outcomes.Outcome,
      possible: Callable[[plain_model.State], Iterable[tuple[outcomes.Outcome, plain_model.State]]],
      what: str) -> None:
    expected = [one for state in self._states for one in possible(state)]
    self._states = frozenset(after for outcome, after in expected if _same(outcome, got))
    if not self._states:
      raise Difference(f"{what} got {got}, and without a stage {_either([outcome for outcome, _ in expected])}")


def _same(expected: outcomes.Outcome, got: outcomes.Outcome) -> bool:
  if type(expected) is not type(got):
    return False
  return expected == got


def _either(possible: Sequence[outcomes.Outcome]) -> str:
  return " or ".join(dict.fromkeys(str(outcome) for outcome in possible))
