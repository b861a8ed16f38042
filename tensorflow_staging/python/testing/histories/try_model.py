# SPDX-License-Identifier: Apache-2.0
"""Plays random histories to the model of the ledgers."""

from __future__ import annotations

import random

from tensorflow_staging.python.testing.histories import ledger_model
from tensorflow_staging.python.testing.histories import playing
from tensorflow_staging.python.testing.histories import random_histories


def try_seed(
    seed: int, *, in_functions: bool, model: type[ledger_model.LedgerModel] = ledger_model.LedgerModel,
    tells: bool = False) -> str:
  """Plays one history.

  Args:
    seed: Its seed, which also chooses who goes on when.
    in_functions: Whether its program is one of a `tf.function`.
    model: The model.
    tells: Whether to print it.

  Returns:
    What went wrong; empty if nothing did.
  """
  history = random_histories.history_of(seed, in_functions=in_functions)
  player = model(history.program, random.Random(f"scheduler {seed}"))
  try:
    playing.Playing(history, player, tells=tells).play()
  except AssertionError as error:
    return str(error)
  return ""
