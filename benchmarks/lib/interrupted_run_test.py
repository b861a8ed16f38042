# SPDX-License-Identifier: Apache-2.0
"""The account of a run finds what is lost, repeated and misplaced."""

import pytest

from lib import interrupted_run

_CASES = {
    "nothing wrong": ([[0, 2, 4], [1, 3]], 0, dict(taken=5)),
    "one is lost": ([[0, 1], [3, 4]], 0, dict(taken=4, lost=1)),
    "one is repeated": ([[0, 1, 2], [2, 3, 4]], 0, dict(taken=6, repeated=1)),
    "one is given up": ([[0, 2], [3, 4]], 2, dict(taken=4, given_up=1)),
    "one is given up, and another one is lost": ([[0, 2], [4]], 2, dict(taken=3, given_up=1, lost=1)),
    "one comes too late": ([[0, 1, 2, ~3], [4]], 0, dict(taken=5, misplaced=1)),
    "one belongs to other data": ([[0, 1, 2, 3, 4], [5]], 0, dict(taken=6, misplaced=1)),
}


@pytest.mark.parametrize("taken,given_up,expected", _CASES.values(), ids=_CASES)
def test_account(taken, given_up, expected):
  account = interrupted_run.account_of(taken, 0, given_up, 5, in_order=False)
  assert account == interrupted_run.Account(**expected)
  assert account.faultless == (set(expected) <= {"taken", "given_up"})


@pytest.mark.parametrize("in_order", [True, False])
def test_order_counts_only_where_it_is_defined(in_order):
  account = interrupted_run.account_of([[0, 2, 1]], 0, 0, 3, in_order)
  assert account == interrupted_run.Account(taken=3, misplaced=int(in_order))
