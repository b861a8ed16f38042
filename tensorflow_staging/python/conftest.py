# SPDX-License-Identifier: Apache-2.0
"""The fixtures of every Python test beside the code that it tests."""

import pathlib

from tensorflow_staging.python.testing import test_fixtures
from tensorflow_staging.python.testing.test_fixtures import graph  # noqa: F401
from tensorflow_staging.python.testing.test_fixtures import no_stage_left  # noqa: F401
from tensorflow_staging.python.testing.test_fixtures import run_forked  # noqa: F401

pytest_collection_modifyitems = test_fixtures.limit_time(pathlib.Path(__file__).parent)
