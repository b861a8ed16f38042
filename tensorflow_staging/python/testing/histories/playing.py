# SPDX-License-Identifier: Apache-2.0
"""Plays a history: to a model or to the product, which have the same methods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from typing import Protocol

from tensorflow_staging.python.testing.histories import iterator_model
from tensorflow_staging.python.testing.histories import oracle
from tensorflow_staging.python.testing.histories import outcomes
from tensorflow_staging.python.testing.histories import programs
from tensorflow_staging.python.testing.histories import random_histories
from tensorflow_staging.python.testing.histories import unordered_oracle
from tensorflow_staging.python.testing.histories.operations import Kind
from tensorflow_staging.python.testing.histories.operations import Operation

# More than the data of any program have.
_MOST_STEPS = 100


class Player(Protocol):
  """What a history is played to: `ledger_model.LedgerModel` describes the methods."""

  is_running: bool

  def new_session(self, layout: programs.Layout) -> None: ...

  def step(self) -> outcomes.Outcome: ...

  def initialise(self, names: Iterable[str], data: iterator_model.Data) -> None: ...

  def initialise_in_vain(self, name: str, way: int) -> None: ...

  def initialise_again(self, names: Iterable[str]) -> None: ...

  def save(self, steps: int) -> tuple[Any, list[outcomes.Outcome]]: ...

  def restore(self, names: Iterable[str], saved: Any, way: int) -> None: ...

  def read_beside(self, name: str, way: int) -> outcomes.Outcome | None: ...

  def start(self, layout: programs.Layout) -> None: ...

  def stop(self) -> None: ...

  def discard(self) -> None: ...

  def wait(self, ticks: int) -> None: ...


class Playing:
  """One history that is being played."""

  def __init__(self, history: random_histories.History, player: Player, *, tells: bool = False):
    """Prepares to play.

    Args:
      history: The program and what happens to it.
      player: To what it happens.
      tells: Whether to print it meanwhile.
    """
    self._program, self._operations = history
    self._player = player
    self._tells = tells
    kind = oracle.Oracle if self._program.keeps_order else unordered_oracle.UnorderedOracle
    self._oracle = kind(self._program)
    self._saves: list[tuple[Any, Any]] = []
    # After a restore, until a step has got a record: whether one has got something else.
    self._has_failed = False

  def play(self) -> None:
    """Plays the history.

    Raises:
      oracle.Difference: A step, or a read beside the steps, got what it would not have got without a stage.
    """
    for operation in self._operations:
      self._say(str(operation))
      self._do(operation)

  def _do(self, operation: Operation) -> None:
    kind, player = operation.kind, self._player
    if kind is Kind.NEW_SESSION:
      player.new_session(self._program.layouts[operation.layout])
      self._oracle.new_session()
    elif kind is Kind.STEP:
      for _ in range(operation.count):
        self._step(operation)
    elif kind is Kind.FINISH:
      for _ in range(_MOST_STEPS):
        if self._step(operation) == outcomes.END:
          break
    elif kind is Kind.INITIALISE:
      # It would go on at a restored position, if no step has got a record since.
      if not self._oracle.holds_positions:
        player.initialise(operation.names, operation.data)
        self._oracle.initialise(operation.names, operation.data)
    elif kind is Kind.INITIALISE_IN_VAIN:
      player.initialise_in_vain(operation.names[0], operation.count)
    elif kind is Kind.INITIALISE_AGAIN:
      if self._oracle.holds_positions and not self._has_failed:
        player.initialise_again(operation.names)
    elif kind is Kind.SAVE:
      self._save(operation)
    elif kind is Kind.RESTORE:
      saved, states = self._saves[-1 - operation.age % len(self._saves)]
      player.restore(operation.names, saved, operation.count)
      self._oracle.restore(operation.names, states)
      self._has_failed = False
    elif kind is Kind.READ_BESIDE:
      got = player.read_beside(operation.names[0], operation.count)
      if got is not None:
        self._oracle.read_beside(operation.names[0], self._got(got))
    elif kind is Kind.STOP and player.is_running:
      player.stop()
    elif kind is Kind.START and not player.is_running:
      player.start(self._program.layouts[operation.layout])
    elif kind is Kind.DISCARD:
      player.discard()
    elif kind is Kind.WAIT:
      player.wait(operation.count)

  def _step(self, operation: Operation) -> outcomes.Outcome:
    self._start(operation)
    got = self._got(self._player.step())
    self._oracle.step(got)
    return got

  def _start(self, operation: Operation) -> None:
    if not self._player.is_running:
      self._player.start(self._program.layouts[operation.layout])

  def _save(self, operation: Operation) -> None:
    if operation.count:
      self._start(operation)
    states = self._oracle.save()
    saved, got = self._player.save(operation.count)
    for outcome in got:
      self._oracle.step(self._got(outcome))
      states |= self._oracle.save()
    self._saves.append((saved, states))

  def _got(self, outcome: outcomes.Outcome) -> outcomes.Outcome:
    self._say(f"  got {outcome}")
    self._has_failed |= outcomes.failed(outcome)
    return outcome

  def _say(self, text: str) -> None:
    if self._tells:
      print(text, flush=True)
