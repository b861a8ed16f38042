# SPDX-License-Identifier: Apache-2.0
"""What pytest needs to run the plugin's tests."""

# Of ci/, which pytest.ini adds to Python's path.
pytest_plugins = ["hanging_tests"]
