# SPDX-License-Identifier: Apache-2.0
"""Lets the Python tests, which lie beside the code or in tests/, run against the installed wheel.

The source tree's `tensorflow_staging` has no compiled modules, and pytest would import the tests from there, and with
them the package. This file therefore imports the wheel's package first and appends the source folder to the package's
path: Python finds the tests and their helpers in the source tree, and everything else in the wheel.
"""

import importlib.util
import pathlib
import sys

# Of ci/, which pyproject.toml adds to Python's path.
pytest_plugins = ["side_by_side", "hanging_tests"]

_ROOT = pathlib.Path(__file__).parent


def _load_wheel() -> None:
  sys.path[:] = [entry for entry in sys.path if pathlib.Path(entry).resolve() != _ROOT]
  # If the wheel is not installed, the tests of the other folders still run.
  if importlib.util.find_spec("tensorflow_staging"):
    import tensorflow_staging.python as package

    package.__path__.append(str(_ROOT / "tensorflow_staging" / "python"))


_load_wheel()
