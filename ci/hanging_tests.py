# SPDX-License-Identifier: Apache-2.0
"""Ends a pytest process whose test hangs where pytest-timeout cannot reach it: in C++ code, or with its signal blocked.

pytest-timeout fails a test in time if its thread runs Python again. Otherwise the stacks of all threads are printed a
little later, and the process ends; with `pytest -n`, another worker goes on with the other tests.
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Generator
from typing import Any

import pytest

# What a test has for its teardown when its time is over.
_MORE_SECONDS = 30

_STDERR = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
  # Now, because pytest captures what tests write to standard error.
  config.stash[_STDERR] = os.dup(2)
  config.add_cleanup(lambda: os.close(config.stash[_STDERR]))


def _limit(item: pytest.Item) -> float:
  """Returns how long pytest-timeout lets a test take, in seconds; 0 if it has no limit."""
  marker = item.get_closest_marker("timeout")
  if marker:
    return float(marker.args[0] if marker.args else marker.kwargs["timeout"])
  option = item.config.getoption("timeout")
  return float(item.config.getini("timeout") or 0) if option is None else option


def _watch(item: pytest.Item) -> None:
  if limit := _limit(item):
    faulthandler.dump_traceback_later(limit + _MORE_SECONDS, exit=True, file=item.config.stash[_STDERR])


# Comes late, so that the time for which a test waits for others (side_by_side.py) is not part of its limit.
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
  _watch(item)
  try:
    return (yield)
  finally:
    faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
  # pytest cancels this when a test fails, because a person may now debug it.
  _watch(item)
