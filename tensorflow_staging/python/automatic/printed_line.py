# SPDX-License-Identifier: Apache-2.0
"""Prints a line for the user of a program that does not know of us."""

import sys

from tensorflow_staging.python import api_name

_PREFIX = f"{api_name.PACKAGE}: "


def say(text: str) -> None:
  """Prints a line to the standard error, if the program has not closed it."""
  try:
    print(f"{_PREFIX}{text}", file=sys.stderr, flush=True)
  except (OSError, ValueError, AttributeError):
    pass
