# SPDX-License-Identifier: Apache-2.0
"""Lets the workers of `pytest -n 3` run tests side by side, except tests that are marked `alone`.

A test that measures time is marked `alone`: while it runs, no other worker runs a test. Without workers, every test
runs alone anyway.
"""

from __future__ import annotations

import contextlib
import fcntl
import pathlib
import tempfile
from collections.abc import Generator
from collections.abc import Iterator
from typing import Any

import pytest

_FOLDER = pytest.StashKey[tempfile.TemporaryDirectory]()


def pytest_configure(config: pytest.Config) -> None:
  config.addinivalue_line("markers", "alone: the test measures time, so no other test runs beside it")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
  """Gives a new worker the folder for the locks of all workers."""
  stash = node.config.stash
  if _FOLDER not in stash:
    stash[_FOLDER] = tempfile.TemporaryDirectory()
    node.config.add_cleanup(stash[_FOLDER].cleanup)
  node.workerinput["side_by_side"] = stash[_FOLDER].name


@contextlib.contextmanager
def _locked(path: pathlib.Path, kind: int) -> Iterator[None]:
  """Holds a lock of all workers: `fcntl.LOCK_EX` for one of them, `fcntl.LOCK_SH` for any number."""
  with path.open("a") as file:
    fcntl.flock(file, kind)
    # Closing the file ends the lock.
    yield


# Comes first, so that it is around pytest-timeout: the time for which a test waits here is not part of its limit.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
  worker = getattr(item.config, "workerinput", None)
  if worker is None:
    return (yield)
  folder = pathlib.Path(worker["side_by_side"])
  kind = fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH
  with contextlib.ExitStack() as test:
    # Workers enter one after the other. Otherwise new tests could begin for ever while an `alone` test waits.
    with _locked(folder / "next", fcntl.LOCK_EX):
      test.enter_context(_locked(folder / "tests", kind))
    return (yield)
