# SPDX-License-Identifier: Apache-2.0
"""Builds launch.cc, which measures a machine's GPU without TensorFlow.

As a program, it runs the one that its argument names: the kit's machine has no compiler.
"""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator

_SOURCE = pathlib.Path(__file__).with_name("launch.cc")
# The kit's machine may have an older C++ library.
_COMMAND = ("g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-static-libstdc++", "-static-libgcc",
            "-pthread")


@contextlib.contextmanager
def built() -> Iterator[pathlib.Path]:
  """Yields the program, which goes with the context.

  Raises:
    CalledProcessError: If the compiler fails.
    FileNotFoundError: If there is none.
  """
  with tempfile.TemporaryDirectory() as folder:
    program = pathlib.Path(folder, "launch")
    subprocess.run([*_COMMAND, _SOURCE, "-o", program, "-ldl"], check=True, timeout=300)
    yield program


if __name__ == "__main__":
  sys.exit(subprocess.run([pathlib.Path(sys.argv[1]).resolve()]).returncode)
