# SPDX-License-Identifier: Apache-2.0
"""The command `compare`: measures what SmartStage gains a program."""

import argparse
import math
import os
import pathlib
import signal
import sys
import tempfile
from typing import Any
from typing import NoReturn
from typing import Optional

from tensorflow_staging.python import api_name
from tensorflow_staging.python.automatic import measured_run
from tensorflow_staging.python.automatic import setting
from tensorflow_staging.python.command_line import comparison
from tensorflow_staging.python.command_line import process_tree
from tensorflow_staging.python.command_line import user_program

_DESCRIPTION = """\
Runs a Python program for some steps without and with SmartStage, by turns, and says how many times as fast it is with
SmartStage, and why. The program needs no change. Each run is a new process, which is ended after its steps. It does all
that it always does until then, such as writing checkpoints, so give it a folder that may be written: {folder} in its
arguments stands for a new one, which is removed after the run. Options of compare come before the program; what follows
it are the arguments of the program."""

# How much of its output shows why a program failed.
_LAST_LINES = 15
_MODES = {"without": setting.Setting.OFF, "with": setting.Setting.ON}


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the arguments of the command to its parser."""
  parser.description = _DESCRIPTION
  parser.add_argument(
      "--rounds", type=_rounds, default=5, metavar="N",
      help=f"how often to run the program without and with SmartStage, from 2 to {comparison.MOST_ROUNDS}; the default"
      " is 5")
  parser.add_argument(
      "--warm_up", type=_positive, default=50, metavar="N",
      help="how many steps of a run come before those that are measured; the default is 50")
  parser.add_argument(
      "--steps", type=_positive, default=1000, metavar="N",
      help="how many steps of a run are measured at most; the default is 1000")
  parser.add_argument(
      "--seconds", type=_seconds, default=5.0, metavar="S",
      help="for how long steps of a run are measured at most; the default is 5")
  parser.add_argument(
      "--timeout", type=_seconds, default=120.0, metavar="S",
      help="how long a run may take in all, in seconds; the default is 120")
  user_program.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
  """Runs the comparison and prints what it finds.

  Args:
    arguments: The parsed arguments.

  Returns:
    The exit status: 1 if the program failed or there was nothing to compare, 130 after Ctrl-C, otherwise 0.

  Raises:
    UserError: If there is no such program.
  """
  user_program.command(arguments)
  process_tree.adopt_orphans()
  # What this process has started is to end with it, also when its terminal closes.
  previous = {number: signal.signal(number, _end) for number in (signal.SIGTERM, signal.SIGHUP)}
  try:
    return _compare(arguments)
  except KeyboardInterrupt:
    return 128 + signal.SIGINT
  finally:
    for number, handler in previous.items():
      signal.signal(number, handler)


def _end(number: int, frame: Any) -> NoReturn:
  del frame
  sys.exit(128 + number)


def _compare(arguments: argparse.Namespace) -> int:
  rounds = []
  # To the standard error: it is no result.
  print(
      f"The program runs {2 * arguments.rounds} times. In each, {arguments.warm_up} steps come first; then up to"
      f" {arguments.steps} steps or {arguments.seconds:g} s are measured.", file=sys.stderr, flush=True)
  for index in range(arguments.rounds):
    results = {}
    # By turns, and each of them first as often as the other.
    for mode in ("without", "with") if index % 2 == 0 else ("with", "without"):
      try:
        results[mode] = _measure(arguments, mode)
      except _Problem as problem:
        print(f"{_name(mode)}: {problem}", flush=True)
        return 1
    if not results["with"].stages:
      print(
          "No stage ran: SmartStage has found nothing to run ahead of a step, so there is nothing to compare."
          f" {comparison.what_says_why(results['with'].is_fit)}")
      return 1
    rounds.append(comparison.Round(results["without"], results["with"]))
    print(
        f"round {index + 1} of {arguments.rounds}: {1000 * comparison.step_seconds(results['without']):.2f} ms a step"
        f" without SmartStage, {1000 * comparison.step_seconds(results['with']):.2f} with", flush=True)
  print(comparison.report(rounds))
  return 0


class _Problem(Exception):
  """Why a run of the program is no measurement, in words."""


def _measure(arguments: argparse.Namespace, mode: str) -> measured_run.Result:
  """Runs the program once, without or with SmartStage."""
  with tempfile.TemporaryDirectory(prefix="staging_compare_", ignore_cleanup_errors=True) as name:
    folder = pathlib.Path(name)
    (folder / "folder").mkdir()
    plan = measured_run.Plan(
        os.getpid(), str(folder / "result.json"), arguments.warm_up, arguments.steps, arguments.seconds)
    environment = {
        **user_program.environment(os.environ),
        setting.VARIABLE: _MODES[mode].value,
        setting.COMPARE_VARIABLE: plan.to_environment(),
    }
    command = [word.replace("{folder}", str(folder / "folder")) for word in user_program.command(arguments)]
    status = process_tree.run(command, environment, folder / "output.txt", arguments.timeout)
    result = measured_run.Result.read(folder / "result.json")
    _check(status, result, folder / "output.txt", arguments)
    return result


def _check(
    status: Optional[int], result: Optional[measured_run.Result], output: pathlib.Path,
    arguments: argparse.Namespace) -> None:
  """Raises _Problem unless a run is a measurement."""
  if status is None:
    raise _Problem(
        f"the program did not take its steps within {arguments.timeout:g} s. Raise --timeout, or lower --warm_up and"
        " --steps.")
  if status != 0:
    lines = output.read_text(errors="replace").splitlines()[-_LAST_LINES:]
    raise _Problem("\n    ".join([f"the program failed with the exit status {status}. Its last lines:", *lines]))
  if result is None:
    raise _Problem(
        "the program opened no session and called no fit, so it took no step that can be measured. For a step of"
        f" {api_name.API}.ahead, time the program with TF_STAGING_SMART_STAGE=1 and with TF_STAGING_SMART_STAGE=off.")
  if result.seen == 0:
    raise _Problem(
        "no step of the program took a record from an iterator. SmartStage runs ahead what follows an iterator's"
        " get_next(), and not what is fed. Read the data with tf.data, or give tf.staged a feed_generator for what is"
        " fed.")
  if result.seconds == 0:
    raise _Problem(
        f"the program took only {result.seen} steps. Let it take more, or lower --warm_up (now {arguments.warm_up}).")


def _name(mode: str) -> str:
  return f"{mode.capitalize()} SmartStage"


def _rounds(text: str) -> int:
  if not text.isdecimal() or not 2 <= int(text) <= comparison.MOST_ROUNDS:
    raise argparse.ArgumentTypeError(f"{text!r} must be an integer from 2 to {comparison.MOST_ROUNDS}.")
  return int(text)


def _positive(text: str) -> int:
  if not text.isdecimal() or int(text) == 0:
    raise argparse.ArgumentTypeError(f"{text!r} must be an integer, at least 1.")
  return int(text)


def _seconds(text: str) -> float:
  try:
    seconds = float(text)
  except ValueError:
    seconds = 0.0
  if not 0 < seconds < math.inf:
    raise argparse.ArgumentTypeError(f"{text!r} must be a positive number of seconds.")
  return seconds
