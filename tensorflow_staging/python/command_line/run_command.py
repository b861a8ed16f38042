# SPDX-License-Identifier: Apache-2.0
"""The command `run`: runs a program with SmartStage in each `fit` and in all of its sessions."""

import argparse
import os
from collections.abc import Mapping

from tensorflow_staging.python.automatic import setting
from tensorflow_staging.python.command_line import user_program

_DESCRIPTION = f"""\
Runs a Python program with SmartStage in each fit of Keras and in all sessions that do not set it themselves, and in
those of its child processes. The program says at its start that SmartStage is on, and at its end what that gained. It
is the same as to set the environment variable {setting.VARIABLE}=1."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the arguments of the command to its parser."""
  parser.description = _DESCRIPTION
  user_program.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
  """Replaces this process by the program, which thus gets its signals and gives its exit status.

  Args:
    arguments: The parsed arguments.

  Raises:
    UserError: If there is no such program.
  """
  command = user_program.command(arguments)
  os.execve(command[0], command, environment(os.environ))


def environment(mine: Mapping[str, str]) -> dict[str, str]:
  """Returns the environment of the program, from that of this process."""
  return {**user_program.environment(mine), setting.VARIABLE: setting.Setting.ON.value}
