# SPDX-License-Identifier: Apache-2.0
"""The command line of a benchmark that takes no arguments, and may run for an hour: `--help` must not start it."""

import argparse


def check(description: str) -> None:
  """Ends the process if the command line has arguments: after the help, or with an error that names them."""
  parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.parse_args()
