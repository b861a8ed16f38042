# SPDX-License-Identifier: Apache-2.0
"""The program `python -m tensorflow.staging`; beside an official TensorFlow, `python -m tensorflow_staging`."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any
from typing import NoReturn
from typing import Optional

from tensorflow.python.framework import ops
from tensorflow.python.platform import tf_logging

from tensorflow_staging.python import api_name
from tensorflow_staging.python.command_line import installation
from tensorflow_staging.python.command_line import user_error

_COMMANDS = {
    "run": "run a program with SmartStage, without a change to it",
    "compare": "measure what SmartStage gains a program",
    "explain": "report what runs ahead of the step in a graph",
    "doctor": "check the installation, and say what is wrong",
}
if api_name.IS_PLUGIN:
  del _COMMANDS["explain"]  # Of the graphs of sessions.
_USAGE_STATUS = 2


class _Parser(argparse.ArgumentParser):

  def error(self, message: str) -> NoReturn:
    self.exit(_USAGE_STATUS, f"{self.prog}: error: {message}\n")


def main(arguments: Optional[Sequence[str]] = None) -> int:
  """Runs a command.

  Args:
    arguments: The arguments of the program; None stands for those of the process.

  Returns:
    The exit status: 0, or 1 if the doctor found a problem or a comparison has no result, or 2 if the command cannot be
    run as it was given.
  """
  # Otherwise the version is wrapped to the width of the terminal, between the words of its commit.
  parser = _Parser(
      prog=api_name.PROGRAM, description="Tools for pipeline staging.",
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument(
      "--version", action="version", version=installation.of_this().version(),
      help="print the wheel's version, and exit")
  commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
  for name, summary in _COMMANDS.items():
    _command(name).add_arguments(commands.add_parser(name, help=summary))
  parsed = parser.parse_args(arguments)
  verbosity = tf_logging.get_verbosity()
  tf_logging.set_verbosity(tf_logging.ERROR)
  try:
    # The commands work on graphs, also where `import tensorflow` gives TensorFlow 2's API.
    with ops.Graph().as_default():
      status = _command(parsed.command).run(parsed)
    sys.stdout.flush()
    return status
  except BrokenPipeError:
    # Whoever reads the output, such as `head`, has enough of it. The interpreter must not try to write the rest.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
  except user_error.UserError as error:
    print(f"{api_name.PROGRAM} {parsed.command}: error: {error}", file=sys.stderr)
    return _USAGE_STATUS
  finally:
    # A program that calls this function keeps its own choice.
    tf_logging.set_verbosity(verbosity)


def _command(name: str) -> Any:
  """Returns the module of a command."""
  return importlib.import_module(f"tensorflow_staging.python.command_line.{name}_command")
