# SPDX-License-Identifier: Apache-2.0
"""The rule of `ledgers.py` keeps every element, and the histories find a rule that does not.

STAGING_HISTORIES sets how many histories there are, 600 by default.
"""

import os
import random

import pytest

from tensorflow_staging.python.testing.histories import ledger_model
from tensorflow_staging.python.testing.histories import ledgers
from tensorflow_staging.python.testing.histories import outcomes
from tensorflow_staging.python.testing.histories import playing
from tensorflow_staging.python.testing.histories import random_histories

_HISTORIES = int(os.environ.get("STAGING_HISTORIES", "600"))
_HISTORIES_PER_SECOND = 50
# A fault is found in so many histories or fewer.
_HISTORIES_OF_A_FAULT = 3000


def _differs(seed: int, *, in_functions: bool, model: type[ledger_model.LedgerModel]) -> bool:
  history = random_histories.history_of(seed, in_functions=in_functions)
  player = model(history.program, random.Random(f"scheduler {seed}"))
  try:
    playing.Playing(history, player).play()
  except AssertionError:
    return True
  return False


@pytest.mark.timeout(60 + _HISTORIES / _HISTORIES_PER_SECOND)
@pytest.mark.parametrize("in_functions", [False, True])
def test_steps_get_what_they_get_without_a_stage(in_functions):
  for seed in range(_HISTORIES):
    assert not _differs(seed, in_functions=in_functions, model=ledger_model.LedgerModel), f"seed {seed}"


class _OnlyOneGoesBack(ledgers.Ledgers):
  """The elements after it stay in the records that have them."""

  def _going_back(self, entry):
    return [entry]


class _OthersGetNothingBack(ledgers.Ledgers):
  """What a stale run has of other iterators is lost."""

  def _also_going_back(self, holder):
    for entry in holder.entries:
      if not entry.is_back and not entry.is_void:
        entry.used_at = 0
    return []


class _NoMoment(ledgers.Ledgers):
  """Each iterator is saved as it is when its turn comes."""

  def saved(self, name, moment):
    return super().saved(name, 2**60)


class _FailuresAreForgotten(ledgers.Ledgers):
  """Only elements go back."""

  def _going_back(self, entry):
    going_back = super()._going_back(entry)
    for one in going_back:
      if outcomes.failed(one.outcome):
        one.used_at = 0
    return [one for one in going_back if one.used_at is None]


class _ElementsAreForgottenDuringARead(ledger_model.LedgerModel):
  """What goes back while somebody reads comes after what is read."""

  def _after_get_next(self, ledger):
    return ledger.read()


class _IgnoredIsUsedAtOnce(ledger_model.LedgerModel):
  """What a run has read that is ignored does not come again, even if the records before it are made again."""

  def _ignore(self, run):
    self.ledgers.use([entry for entry in run.entries if not entry.is_void])
    run.entries = []


class _OnlyTheFailureIsUsed(ledger_model.LedgerModel):
  """What a run had read before it failed comes again."""

  def _use(self, taken):
    kept = taken.entries[-1:] if taken.failure else taken.entries
    self.ledgers.use(kept)
    self._roll_back(entry for entry in taken.entries if entry not in kept)


def _with(kind: type[ledgers.Ledgers]) -> type[ledger_model.LedgerModel]:
  return type(kind.__name__, (ledger_model.LedgerModel,), {"make_ledgers": kind})


@pytest.mark.parametrize("model", [
    _with(_OnlyOneGoesBack), _with(_OthersGetNothingBack), _with(_NoMoment), _with(_FailuresAreForgotten),
    _ElementsAreForgottenDuringARead, _IgnoredIsUsedAtOnce, _OnlyTheFailureIsUsed], ids=lambda model: model.__name__)
def test_a_fault_is_found(model):
  assert any(_differs(seed, in_functions=False, model=model) for seed in range(_HISTORIES_OF_A_FAULT))
