# SPDX-License-Identifier: Apache-2.0
"""Runs short programs in forks of an interpreter that has imported TensorFlow: the import takes most of their time.

A program whose subject is the import, or what happens when an interpreter starts, needs an interpreter of its own:
`test_util.run_program`.
"""

from __future__ import annotations

import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import textwrap

from tensorflow_staging.python.testing import prepared_interpreter
from tensorflow_staging.python.testing import test_util


class ForkedPrograms:
  """Runs programs one after the other. A context manager: at its end, no process is left."""

  def __init__(self) -> None:
    self._interpreters: dict[str, subprocess.Popen] = {}

  def __enter__(self) -> ForkedPrograms:
    return self

  def __exit__(self, *error) -> None:
    for api_version in list(self._interpreters):
      self._end(api_version)

  def run(self, source: str, folder: pathlib.Path, *, api_version: str = "1") -> str:
    """Runs a Python program, which sees the installed wheel and not the source tree.

    Args:
      source: The program's text; its common indentation is removed.
      folder: The folder in which the program is written and run.
      api_version: The API that `import tensorflow` gives: "1" or "2".

    Returns:
      The program's standard output.

    Raises:
      AssertionError: The program failed.
    """
    program = folder / "program.py"
    program.write_text(textwrap.dedent(source))
    with tempfile.TemporaryDirectory() as name:
      stdout, stderr = pathlib.Path(name, "stdout"), pathlib.Path(name, "stderr")
      status = self._status(api_version, [program, stdout, stderr])
      assert status == "0", f"{program} exited with status {status}:\n{stderr.read_text()[-8000:]}"
      return stdout.read_text()

  def _status(self, api_version: str, request: list[pathlib.Path]) -> str:
    """Returns the exit status of a program."""
    if api_version not in self._interpreters:
      environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
      self._interpreters[api_version] = subprocess.Popen(
          [sys.executable, prepared_interpreter.__file__], env=environment | {"TF_API_VERSION": api_version},
          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    interpreter = self._interpreters[api_version]
    interpreter.stdin.write(json.dumps([str(path) for path in request]) + "\n")
    interpreter.stdin.flush()
    if not select.select([interpreter.stdout], [], [], test_util.PROGRAM_SECONDS)[0]:
      self._end(api_version)
      raise AssertionError(f"{request[0]} ran for more than {test_util.PROGRAM_SECONDS} s.")
    return interpreter.stdout.readline().strip()

  def _end(self, api_version: str) -> None:
    with self._interpreters.pop(api_version) as interpreter:
      os.killpg(interpreter.pid, signal.SIGKILL)
