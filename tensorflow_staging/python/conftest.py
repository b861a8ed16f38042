# SPDX-License-Identifier: Apache-2.0
"""The fixtures of every Python test beside the code that it tests."""

import pathlib

from tensorflow_staging.python.testing import each_test
from tensorflow_staging.python.testing.each_test import graph  # noqa: F401
from tensorflow_staging.python.testing.each_test import no_stage_left  # noqa: F401
from tensorflow_staging.python.testing.each_test import run_forked  # noqa: F401

pytest_collection_modifyitems = each_test.limit_time(pathlib.Path(__file__).parent)
