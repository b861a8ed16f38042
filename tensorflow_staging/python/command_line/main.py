# SPDX-License-Identifier: Apache-2.0
"""The program `python -m tensorflow.staging`."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn
from typing import Optional

from tensorflow.python.framework import ops
from tensorflow.python.platform import tf_logging

from tensorflow_staging.python.build_info import build_info
from tensorflow_staging.python.command_line import compare_command
from tensorflow_staging.python.command_line import doctor_command
from tensorflow_staging.python.command_line import explain_command
from tensorflow_staging.python.command_line import run_command
from tensorflow_staging.python.command_line import user_error

_PROGRAM = "python -m tensorflow.staging"
_COMMANDS = {
    "run": (run_command, "run a program with SmartStage, without a change to it"),
    "compare": (compare_command, "measure what SmartStage gains a program"),
    "explain": (explain_command, "report what runs ahead of the step in a graph"),
    "doctor": (doctor_command, "check the installation, and say what is wrong"),
}
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
      prog=_PROGRAM, description="Tools for pipeline staging.", formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--version", action="version", version=_version(), help="print the wheel's version, and exit")
  commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
  for name, (command, summary) in _COMMANDS.items():
    command.add_arguments(commands.add_parser(name, help=summary))
  parsed = parser.parse_args(arguments)
  verbosity = tf_logging.get_verbosity()
  tf_logging.set_verbosity(tf_logging.ERROR)
  try:
    # The commands work on graphs, also where `import tensorflow` gives TensorFlow 2's API.
    with ops.Graph().as_default():
      status = _COMMANDS[parsed.command][0].run(parsed)
    sys.stdout.flush()
    return status
  except BrokenPipeError:
    # Whoever reads the output, such as `head`, has enough of it. The interpreter must not try to write the rest.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
  except user_error.UserError as error:
    print(f"{_PROGRAM} {parsed.command}: error: {error}", file=sys.stderr)
    return _USAGE_STATUS
  finally:
    # A program that calls this function keeps its own choice.
    tf_logging.set_verbosity(verbosity)


def _version() -> str:
  info = build_info.build_info()
  commit = f", commit {info.commit}" if info.commit else ""
  return f"tensorflow {info.version} ({info.base}){commit}"
