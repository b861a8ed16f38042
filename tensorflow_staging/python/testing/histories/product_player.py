# SPDX-License-Identifier: Apache-2.0
"""What the players have in common that play histories to the product."""

from __future__ import annotations

import abc
import pathlib
import threading
from collections.abc import Iterable
from collections.abc import Mapping
from typing import NamedTuple

from tensorflow_staging.python.testing.histories import iterator_model
from tensorflow_staging.python.testing.histories import outcomes
from tensorflow_staging.python.testing.histories import programs

# How many runs of something else a tick has. They give the producers time, however busy the machine is.
_RUNS_PER_TICK = 4


class Saved(NamedTuple):
  """A checkpoint, and the data that the sources had."""

  path: str
  data: dict[str, iterator_model.Data]


class ProductPlayer(abc.ABC):
  """A program that runs in TensorFlow; `ledger_model.LedgerModel` describes its methods. A context manager.

  Attributes:
    is_running: Whether the stages run, or would run as soon as a step needs them.
  """

  def __init__(self, program: programs.Program, folder: pathlib.Path):
    """Makes the player.

    Args:
      program: The program. All histories of a player have it.
      folder: Where checkpoints are written.
    """
    self._program = program
    self._folder = folder
    self._saves = 0
    # What each source has got last.
    self._data: dict[str, iterator_model.Data] = {}
    self.is_running = False

  @abc.abstractmethod
  def step(self) -> outcomes.Outcome:
    """Returns what a step gets."""

  def initialise_again(self, names: Iterable[str]) -> None:
    self._initialise({name: self._data[name] for name in names})

  def save(self, steps: int) -> tuple[Saved, list[outcomes.Outcome]]:
    got = []
    stepping = threading.Thread(target=lambda: got.extend(self.step() for _ in range(steps)))
    path = str(self._folder / str(self._saves))
    self._saves += 1
    if self._may_step_during_a_save():
      stepping.start()
      self._write(path)
    else:
      self._write(path)
      stepping.start()
    stepping.join()
    assert len(got) == steps, "A step that ran during a save has failed."
    return Saved(path, dict(self._data)), got

  def wait(self, ticks: int) -> None:
    for _ in range(ticks * _RUNS_PER_TICK):
      self._do_something_else()

  @abc.abstractmethod
  def _initialise(self, data: Mapping[str, iterator_model.Data]) -> None:
    """Gives sources data."""

  @abc.abstractmethod
  def _may_step_during_a_save(self) -> bool:
    """Whether a save has the same of all sources if steps run meanwhile."""

  @abc.abstractmethod
  def _write(self, path: str) -> None:
    """Writes a checkpoint."""

  @abc.abstractmethod
  def _do_something_else(self) -> None:
    """Runs something that reads no source."""
