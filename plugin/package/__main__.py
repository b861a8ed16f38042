# SPDX-License-Identifier: Apache-2.0
"""Runs `python -m tensorflow_staging`."""

import sys

from tensorflow_staging.python.command_line import main

if __name__ == "__main__":
  sys.exit(main.main())
