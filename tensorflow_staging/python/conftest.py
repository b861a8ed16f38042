# SPDX-License-Identifier: Apache-2.0
"""Gives every Python test a new default graph and a time limit, and checks that no stage outlives the test."""

import pathlib

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import forked_programs
from tensorflow_staging.python.testing import test_util

# Long enough for the slowest tests, which compile a C++ file or start several interpreters.
_TIMEOUT_SECONDS = 180


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
  """Limits the time of every test in this folder, unless the test itself says how long it may take.

  The "thread" method ends the whole process, which is the only way to end a test that hangs inside C++.
  """
  folder = pathlib.Path(__file__).parent
  for item in items:
    if item.path.is_relative_to(folder):
      own = item.get_closest_marker("timeout")
      seconds = own.args[0] if own else _TIMEOUT_SECONDS
      item.add_marker(pytest.mark.timeout(seconds, method="thread"), append=False)


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
