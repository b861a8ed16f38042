# SPDX-License-Identifier: Apache-2.0
"""Runs short programs in forks of an interpreter that has imported TensorFlow: the import takes most of their time.

A program whose subject is the import, or what happens when an interpreter starts, needs an interpreter of its own:
`test_util.run_program`.
"""

from __future__ import annotations

import contextlib
import pathlib
import sys
import tempfile
import textwrap

from tensorflow_staging.python.testing import forks
from tensorflow_staging.python.testing import program_environment
from tensorflow_staging.python.testing import test_util

_INTERPRETER = pathlib.Path(__file__).with_name("prepared_interpreter.py")


class ForkedPrograms:
  """Runs programs one after the other. A context manager: at its end, no process is left."""

  def __init__(self) -> None:
    self._interpreters: dict[str, forks.Server] = {}
    self._end = contextlib.ExitStack()

  def __enter__(self) -> ForkedPrograms:
    return self

  def __exit__(self, *error) -> None:
    self._end.close()

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
      status = self._interpreter(api_version).run(
          str(program), folder=str(folder), stdout=str(stdout), stderr=str(stderr), seconds=test_util.PROGRAM_SECONDS)
      assert status is not None, f"{program} ran for more than {test_util.PROGRAM_SECONDS} s."
      assert status == 0, f"{program} exited with status {status}:\n{stderr.read_text()[-8000:]}"
      return stdout.read_text()

  def _interpreter(self, api_version: str) -> forks.Server:
    """Returns that of an API, which it starts for the first program."""
    if api_version not in self._interpreters:
      environment = program_environment.without_source_tree()
      server = forks.Server([sys.executable, str(_INTERPRETER)], environment | {"TF_API_VERSION": api_version})
      self._interpreters[api_version] = self._end.enter_context(server)
    return self._interpreters[api_version]
