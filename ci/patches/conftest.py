# SPDX-License-Identifier: Apache-2.0
"""Lets the tests import the modules beside them, which are no package."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
