# SPDX-License-Identifier: Apache-2.0
"""The fixtures of every Python test beside the code that it tests."""

from tensorflow_staging.python.testing.test_fixtures import graph  # noqa: F401
from tensorflow_staging.python.testing.test_fixtures import no_stage_left  # noqa: F401
from tensorflow_staging.python.testing.test_fixtures import run_forked  # noqa: F401
