# SPDX-License-Identifier: Apache-2.0
"""Draws what happens to a program. One seed gives a program and its history, to the model as to the product."""

from __future__ import annotations

import random
from typing import NamedTuple

from tensorflow_staging.python.testing.histories import programs
from tensorflow_staging.python.testing.histories import random_programs
from tensorflow_staging.python.testing.histories.operations import Kind
from tensorflow_staging.python.testing.histories.operations import Operation

# So many seeds, one after the other, have the same program: the product takes long to build it.
SEEDS_OF_A_PROGRAM = 10

_FEWEST, _MOST = 5, 35
_WEIGHTS = {
    Kind.STEP: 8, Kind.WAIT: 2, Kind.INITIALISE: 1, Kind.INITIALISE_IN_VAIN: 0.2, Kind.SAVE: 1.3, Kind.RESTORE: 1.2,
    Kind.READ_BESIDE: 1, Kind.STOP: 1, Kind.START: 1, Kind.DISCARD: 0.7, Kind.FINISH: 0.2, Kind.NEW_SESSION: 0.5}


class History(NamedTuple):
  """A program and what happens to it."""

  program: programs.Program
  operations: list[Operation]


def program_of(seed: int, *, in_functions: bool) -> programs.Program:
  """Returns the program of a history.

  Args:
    seed: The seed of the history.
    in_functions: Whether a `tf.function` is to be the program.
  """
  return random_programs.random_program(
      random.Random(f"program {seed // SEEDS_OF_A_PROGRAM} {in_functions}"), in_functions=in_functions)


def history_of(seed: int, *, in_functions: bool) -> History:
  """Returns a history.

  Args:
    seed: The seed.
    in_functions: Whether a `tf.function` is to be the program.
  """
  program = program_of(seed, in_functions=in_functions)
  rng = random.Random(f"history {seed} {in_functions}")
  return History(program, _Draw(program, rng).operations())


class _Draw:
  """Draws the operations of one history."""

  def __init__(self, program: programs.Program, rng: random.Random):
    self._program = program
    self._rng = rng
    self._base = 0
    self._saves = 0
    self._operations: list[Operation] = []

  def operations(self) -> list[Operation]:
    if self._rng.random() < 0.1:
      self._breaks()
    else:
      self._anything()
    return self._operations

  def _anything(self) -> None:
    self._begin_session()
    for _ in range(self._rng.randint(_FEWEST, _MOST)):
      self._one(self._rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0])

  def _breaks(self) -> None:
    """Saves before the first step, in the midst or after the last one, and goes on each time in a new session."""
    self._begin_session(restores=False)
    for _ in range(self._rng.randint(1, 4)):
      where = self._rng.choice(["unused", "used", "exhausted", "broken"])
      if where == "used":
        self._add(Kind.STEP, count=random_programs.MOST_ELEMENTS)
      elif where == "exhausted":
        self._add(Kind.FINISH)
      elif where == "broken":
        self._add(Kind.STEP, count=self._rng.randint(1, 5))
        self._one(Kind.WAIT)
      self._save()
      if self._rng.random() < 0.3:
        # Going back in the same session.
        self._add(Kind.RESTORE, names=self._program.names)
      else:
        self._begin_session(restores=True)
    self._add(Kind.FINISH)

  def _one(self, kind: Kind) -> None:
    if kind is Kind.NEW_SESSION:
      self._begin_session()
    elif kind is Kind.INITIALISE:
      self._initialise(self._some_names())
    elif kind is Kind.SAVE:
      self._save()
    elif kind is Kind.RESTORE:
      if self._saves:
        self._restore(self._some_names())
    elif kind in (Kind.INITIALISE_IN_VAIN, Kind.READ_BESIDE):
      self._add(kind, names=(self._rng.choice(self._program.names),), count=self._rng.randrange(4))
    else:
      self._add(kind, count=self._rng.randint(1, 12 if kind is Kind.WAIT else 3),
                layout=self._rng.randrange(len(self._program.layouts)))

  def _begin_session(self, restores: bool | None = None) -> None:
    if restores is None:
      restores = self._rng.random() < 0.6
    self._add(Kind.NEW_SESSION, layout=self._rng.randrange(len(self._program.layouts)))
    starts_early = self._rng.random() < 0.5
    if starts_early:
      self._add(Kind.START)
    if restores and self._saves:
      self._restore(self._program.names)
    else:
      self._initialise(self._program.names)
    if not starts_early:
      self._add(Kind.START)

  def _initialise(self, names: tuple[str, ...]) -> None:
    self._base += 1
    data = self._program.data or random_programs.random_data(self._rng, self._base)
    self._add(Kind.INITIALISE, names=names, data=data)

  def _save(self) -> None:
    steps = self._rng.randint(1, 3) if self._program.keeps_order and self._rng.random() < 0.4 else 0
    self._add(Kind.SAVE, count=steps)
    self._saves += 1

  def _restore(self, names: tuple[str, ...]) -> None:
    self._add(Kind.RESTORE, names=names, age=self._rng.randrange(3), count=self._rng.randrange(4))
    if self._program.holds_positions and self._rng.random() < 0.5:
      self._add(Kind.INITIALISE_AGAIN, names=names)

  def _some_names(self) -> tuple[str, ...]:
    return tuple(self._rng.sample(self._program.names, self._rng.randint(1, len(self._program.names))))

  def _add(self, kind: Kind, **fields) -> None:
    self._operations.append(Operation(kind, **fields))
