# SPDX-License-Identifier: Apache-2.0
"""What every Python test gets: a graph of its own, a bound in time, the check that no stage outlives it."""

import pathlib

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util

# The slowest tests compile a C++ file or start a few interpreters.
_TIMEOUT_SECONDS = 180


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
  """Bounds every test of this folder; a hang inside C++ can only be ended by ending the process."""
  folder = pathlib.Path(__file__).parent
  for item in items:
    if item.path.is_relative_to(folder):
      item.add_marker(pytest.mark.timeout(_TIMEOUT_SECONDS, method="thread"), append=False)


@pytest.fixture(autouse=True)
def graph():
  """A new default graph."""
  with tf.Graph().as_default() as new_graph:
    yield new_graph


@pytest.fixture(autouse=True)
def no_stage_left(graph):
  """Fails a test that leaves a thread of a stage behind."""
  yield
  test_util.assert_no_stage_thread()
