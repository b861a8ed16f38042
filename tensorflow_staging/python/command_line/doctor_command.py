# SPDX-License-Identifier: Apache-2.0
"""The command `doctor`: checks the installation."""

import argparse

from tensorflow_staging.python.command_line import installation
from tensorflow_staging.python.doctor import finding

_DESCRIPTION = """\
Checks the version, the files and libraries of the installation, and GPUs, and trains for a second with stages.
Prints what it found, and for each problem what to do. The exit status is 1 if there is a problem."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Sets the description of the command; it has no arguments."""
  parser.description = _DESCRIPTION


def run(arguments: argparse.Namespace) -> int:
  """Runs all checks and prints what they find.

  Args:
    arguments: The parsed arguments.

  Returns:
    The exit status: 1 if there is a problem, otherwise 0.
  """
  del arguments
  findings = []
  for found in installation.of_this().findings():
    print(found, flush=True)
    findings.append(found)
  problems = sum(found.is_problem for found in findings)
  print("No problem found." if not problems else f"Problems: {problems}.")
  return finding.exit_status(findings)
