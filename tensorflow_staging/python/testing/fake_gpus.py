# SPDX-License-Identifier: Apache-2.0
"""GPUs for Python programs on machines that have none; fake_gpus.cc says what they can do."""

import contextlib
import os
import pathlib
from collections.abc import Iterator

import compiled_library
from tensorflow.python.framework import load_library

_SOURCE = pathlib.Path(__file__).with_suffix(".cc")
# The environment variable that has the path of the library, if a program has compiled it for this one.
_LIBRARY = "FAKE_GPUS_LIBRARY"


def load(number: int) -> None:
  """Adds GPUs to a program that has used no device yet.

  Args:
    number: How many.

  Raises:
    RuntimeError: If there is no compiler.
  """
  os.environ["FAKE_GPUS"] = str(number)
  if _LIBRARY in os.environ:
    load_library.load_pluggable_device_library(os.environ[_LIBRARY])
  else:
    compiled_library.load(_SOURCE, load_library.load_pluggable_device_library)


@contextlib.contextmanager
def compiled() -> Iterator[None]:
  """Meanwhile the programs that this one starts need not compile the library."""
  with compiled_library.compiled(_SOURCE) as library:
    os.environ[_LIBRARY] = str(library)
    try:
      yield
    finally:
      del os.environ[_LIBRARY]
