# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of several tests two at a time: most of a short program's time goes into importing TensorFlow."""

import concurrent.futures
import contextlib
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping

import pytest

from tensorflow_staging.python.testing import test_util

_AT_A_TIME = 2


@contextlib.contextmanager
def running_ahead(
    sources: Mapping[tuple[str, ...], str], folders: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
  """Runs programs in their order, while tests wait for the output of one after the other.

  Args:
    sources: The text of each program, by a key that ends with the API that `import tensorflow` gives: "1" or "2".
    folders: Makes a folder for each program.

  Yields:
    A function that takes the parts of a key, waits for the program, and returns what it has printed. It raises
    AssertionError if the program failed.
  """
  with concurrent.futures.ThreadPoolExecutor(_AT_A_TIME) as pool:
    outputs = {
        key: pool.submit(test_util.run_program, source, folders.mktemp("program"), api_version=key[-1])
        for key, source in sources.items()
    }
    try:
      yield lambda *key: outputs[key].result()
    finally:
      pool.shutdown(wait=False, cancel_futures=True)
