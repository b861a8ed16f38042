# SPDX-License-Identifier: Apache-2.0
"""The Python program that a command runs, with its arguments."""

import argparse
import pathlib
import subprocess
import sys
from collections.abc import Mapping

from tensorflow_staging.python.command_line import user_error

_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the arguments that name a program to the parser of a command. They have to be the last ones."""
  parser.add_argument("-m", "--module", action="store_true", help="SCRIPT is the name of a module, as for python -m")
  parser.add_argument("script", metavar="SCRIPT", help="the Python program")
  parser.add_argument("arguments", metavar="ARGUMENTS", nargs=argparse.REMAINDER, help="its arguments")


def command(arguments: argparse.Namespace) -> list[str]:
  """Returns the command that runs the program as Python itself would.

  Args:
    arguments: The parsed arguments.

  Raises:
    UserError: If the script is no file.
  """
  if not arguments.module and not pathlib.Path(arguments.script).exists():
    raise user_error.UserError(f"{arguments.script!r} is no file; allowed is a Python script, or -m with a module.")
  flags = subprocess._args_from_interpreter_flags()
  return [sys.executable, *flags, *(["-m"] if arguments.module else []), arguments.script, *arguments.arguments]


def environment(mine: Mapping[str, str]) -> dict[str, str]:
  """Returns the environment of this process without what our own command has set for itself."""
  theirs = dict(mine)
  if _LOG_LEVEL not in _initial_names():
    theirs.pop(_LOG_LEVEL, None)
  return theirs


def _initial_names() -> set[str]:
  """Returns the names of the environment variables with which this process began."""
  content = pathlib.Path("/proc/self/environ").read_bytes()
  return {entry.split(b"=")[0].decode(errors="replace") for entry in content.split(b"\0")}
