# SPDX-License-Identifier: Apache-2.0
"""Libraries of C++ for programs that test or measure, compiled when they are needed."""

import contextlib
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

_COMPILERS = ("g++", "c++", "clang++")
_SECONDS = 120


@contextlib.contextmanager
def compiled(source: pathlib.Path) -> Iterator[pathlib.Path]:
  """Compiles a file against the installed TensorFlow.

  Args:
    source: The file.

  Yields:
    The path of the library, which is deleted in the end.

  Raises:
    RuntimeError: If there is no compiler.
  """
  compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
  if compiler is None:
    raise RuntimeError(f"{source.name} needs a compiler: {', '.join(_COMPILERS)}.")
  with tempfile.TemporaryDirectory() as folder:
    library = pathlib.Path(folder, f"{source.stem}.so")
    subprocess.run(
        [compiler, "-w", "-shared", "-fPIC", f"-o{library}", source, *tf.sysconfig.get_compile_flags(),
         *tf.sysconfig.get_link_flags()], check=True, timeout=_SECONDS)
    yield library


def load(source: pathlib.Path, loader: Callable[[str], Any]) -> Any:
  """Compiles a file against the installed TensorFlow, and loads it.

  Args:
    source: The file.
    loader: Loads a library of this path.

  Returns:
    What the loader returns.

  Raises:
    RuntimeError: If there is no compiler.
  """
  with compiled(source) as library:
    return loader(str(library))
