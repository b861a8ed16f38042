# SPDX-License-Identifier: Apache-2.0
"""Plays histories by their seeds, one after the other."""

from __future__ import annotations

import collections
import contextlib
import pathlib
import random
import traceback
from typing import Any

from tensorflow_staging.python.testing.histories import ledger_model
from tensorflow_staging.python.testing.histories import playing
from tensorflow_staging.python.testing.histories import programs
from tensorflow_staging.python.testing.histories import random_histories


class Tries:
  """Plays histories to one kind of player. Those of one program share a player, which builds it only once."""

  def __init__(self, kind: str, folder: pathlib.Path, *, tells: bool):
    """Begins without a player.

    Args:
      kind: "model", "sessions" or "functions".
      folder: Where checkpoints are written.
      tells: Whether to print the histories.
    """
    self._kind = kind
    self._folder = folder
    self._tells = tells
    self._program: programs.Program | None = None
    self._player: Any = None
    self._stack = contextlib.ExitStack()
    self._notes: collections.Counter[str] = collections.Counter()

  def play(self, seed: int) -> str:
    """Plays a history.

    Args:
      seed: Its seed.

    Returns:
      What differed from a program without a stage; empty if nothing did.
    """
    history = random_histories.history_of(seed, in_functions=self._kind == "functions")
    try:
      player = self._player_of(history.program, seed)
      playing.Playing(history, player, tells=self._tells).play()
    except AssertionError as error:
      return self._after_failure(str(error))
    except Exception as error:  # pylint: disable=broad-except
      if self._tells:
        traceback.print_exc()
      return self._after_failure(f"{type(error).__name__}: {error}")
    return ""

  def notes(self) -> str:
    """Returns how many programs ran ahead, and how many for some reason did not."""
    return ", ".join(f"{count} {note}" for note, count in self._notes.most_common())

  def close(self) -> None:
    """Ends the player."""
    if self._player is not None and hasattr(self._player, "notes"):
      self._notes.update(self._player.notes())
    self._program = self._player = None
    self._stack.close()

  def _player_of(self, program: programs.Program, seed: int) -> Any:
    if self._kind == "model":
      return ledger_model.LedgerModel(program, random.Random(f"scheduler {seed}"))
    if program != self._program:
      self.close()
      self._player = self._stack.enter_context(self._new_player(program))
      self._program = program
    return self._player

  def _new_player(self, program: programs.Program) -> Any:
    # The model needs no TensorFlow.
    if self._kind == "sessions":
      from tensorflow_staging.python.testing.histories import session_player  # pylint: disable=import-outside-toplevel

      return session_player.SessionPlayer(program, self._folder)
    from tensorflow_staging.python.testing.histories import function_player  # pylint: disable=import-outside-toplevel

    return function_player.FunctionPlayer(program, self._folder)

  def _after_failure(self, difference: str) -> str:
    """The next history gets a player that nothing has happened to."""
    with contextlib.suppress(Exception):
      self.close()
    return difference
