# SPDX-License-Identifier: Apache-2.0
"""The tools of this folder import one another as scripts do."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
