# SPDX-License-Identifier: Apache-2.0
"""What a conftest.py gives every test of its folder: a graph, a limit of time, and a check that no stage is left."""

import pathlib
from collections.abc import Callable

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import forked_programs
from tensorflow_staging.python.testing import test_util

# Long enough for the slowest tests, which compile a C++ file or start several interpreters.
_TIMEOUT_SECONDS = 180


def limit_time(folder: pathlib.Path) -> Callable[[list[pytest.Item]], None]:
  """Returns a `pytest_collection_modifyitems` that limits the time of the folder's tests, unless one has its own limit.

  The "thread" method ends the whole process, which is the only way to end a test that hangs inside C++.
  """

  def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
      if item.path.is_relative_to(folder):
        own = item.get_closest_marker("timeout")
        seconds = own.args[0] if own else _TIMEOUT_SECONDS
        item.add_marker(pytest.mark.timeout(seconds, method="thread"), append=False)

  return pytest_collection_modifyitems


@pytest.fixture(autouse=True)
def graph():
  """Makes a new graph the default graph of the test."""
  with tf.Graph().as_default() as new_graph:
    yield new_graph


@pytest.fixture(autouse=True)
def no_stage_left(graph):
  """Fails a test that leaves a stage's thread running."""
  yield
  test_util.assert_no_stage_thread()


@pytest.fixture(scope="session")
def run_forked():
  """A function that runs a program in a process that has TensorFlow: `ForkedPrograms.run`."""
  with forked_programs.ForkedPrograms() as programs:
    yield programs.run
