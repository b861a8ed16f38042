# SPDX-License-Identifier: Apache-2.0
"""The fixtures of every test of a promise; a cluster for the tests of a file, and a variable on it for each test."""

import pytest

from tensorflow_staging.python.testing import parameter_server_cluster
from tensorflow_staging.python.testing.test_fixtures import graph  # noqa: F401
from tensorflow_staging.python.testing.test_fixtures import no_stage_left  # noqa: F401
from tensorflow_staging.python.testing.test_fixtures import run_forked  # noqa: F401


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
  """A parameter server, two workers and a client, shared by all tests of a file."""
  started = parameter_server_cluster.Cluster(tmp_path_factory.mktemp("cluster"), workers=2)
  try:
    yield started
  finally:
    started.kill()


@pytest.fixture
def weight(request):
  """The name of this test's variable, which no other test uses."""
  return "".join(letter if letter.isalnum() else "_" for letter in request.node.name)
