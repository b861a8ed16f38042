# SPDX-License-Identifier: Apache-2.0
"""A program that imports TensorFlow once, and forks for each program that it is told to run: see forked_programs.py.

Each line of its input is a JSON list: the path of a program, the file for its standard output, and that for its
standard error. When the program has ended, it prints the exit status; if a signal ended the program, the signal's
number, negated.
"""

import gc
import json
import os
import pathlib
import runpy
import sys

import tensorflow  # noqa: F401


def _become(program: pathlib.Path, stdout: str, stderr: str) -> None:
  """Runs a program in this process as if the interpreter had been started with it."""
  os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
  for number, path in ((1, stdout), (2, stderr)):
    os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
  os.chdir(program.parent)
  sys.argv[:] = [program.name]
  sys.path[0] = str(program.parent)
  runpy.run_path(str(program), run_name="__main__")


def main() -> None:
  # Otherwise each program would look for garbage among all that the import has made, above all at its end, and copy it.
  gc.collect()
  gc.freeze()
  for line in sys.stdin:
    program, stdout, stderr = json.loads(line)
    process = os.fork()
    if process == 0:
      _become(pathlib.Path(program), stdout, stderr)
      # The end of this function is that of the interpreter.
      return
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


if __name__ == "__main__":
  main()
