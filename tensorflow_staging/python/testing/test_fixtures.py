# SPDX-License-Identifier: Apache-2.0
"""What a conftest.py gives every test of its folder: a graph, and a check that no stage is left."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import forked_programs
from tensorflow_staging.python.testing import test_util


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
