# SPDX-License-Identifier: Apache-2.0
"""Lets the Python tests, which stand beside the code, run against the installed wheel.

In the source tree `tensorflow_staging` has no compiled parts, and pytest would import the tests, and with them the
package, from there. So the wheel's package is loaded first, and the source folder is added behind it: the tests and
their helpers are found there, everything else in the wheel.
"""

import importlib.util
import pathlib
import sys

_ROOT = pathlib.Path(__file__).parent


def _load_wheel() -> None:
  sys.path[:] = [entry for entry in sys.path if pathlib.Path(entry).resolve() != _ROOT]
  # Without the wheel, the tests of the other folders still run.
  if importlib.util.find_spec("tensorflow_staging"):
    import tensorflow_staging.python as package

    package.__path__.append(str(_ROOT / "tensorflow_staging" / "python"))


_load_wheel()
