# SPDX-License-Identifier: Apache-2.0
"""The environment of a program that a test starts."""

import os


def without_source_tree() -> dict[str, str]:
  """Returns the environment of this process, without what would show the source tree to a program."""
  return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
