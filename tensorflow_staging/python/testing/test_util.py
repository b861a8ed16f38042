# SPDX-License-Identifier: Apache-2.0
"""Small helpers that several tests share."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pathlib
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tensorflow_staging.python.pywrap import _pywrap_staging
from tensorflow_staging.python.testing import program_environment

# How long a test waits for an event before it fails.
WAIT_SECONDS = 30
# How long a program started by a test may run.
PROGRAM_SECONDS = 150

TESTDATA = pathlib.Path(__file__).parent / "testdata"
ROOT = pathlib.Path(__file__).parents[3]

# How long the kernel may keep listing a thread that has ended.
_KERNEL_SECONDS = 1

# The kernel's names of a runner's threads begin with this.
_THREAD_PREFIX = "stage_"


class Source:
  """A Python function that yields the records 0, 1, 2 and so on.

  A test can wait until a record is requested, hold records back, and choose how the data ends.
  """

  def __init__(self, end: int | None = None, error: Exception | None = None):
    """Creates a source.

    Args:
      end: The number of records after which the data ends; None means that it never ends.
      error: The error to raise after the last record, instead of the end of the data.
    """
    self._end = end
    self._error = error or StopIteration()
    self._requested = 0
    self._changed = threading.Condition()
    self._open = threading.Event()
    self._open.set()

  def tensor(self, name: str | None = None) -> tf.Tensor:
    """Returns a scalar int64 tensor that yields the next record each time it is computed."""
    record = tf.numpy_function(self._next, [], tf.int64, name=name)
    record.set_shape([])
    return record

  def wait_until_asked(self, count: int) -> None:
    """Waits until `count` records have been requested, whether or not they have been yielded."""
    with self._changed:
      assert self._changed.wait_for(lambda: self._requested >= count, WAIT_SECONDS), self._requested

  def hold(self) -> None:
    """Holds back every record from the next one on, until `release`."""
    self._open.clear()

  def release(self) -> None:
    """Lets the held and all later records through."""
    self._open.set()

  def _next(self) -> np.int64:
    with self._changed:
      number = self._requested
      self._requested += 1
      self._changed.notify_all()
    self._open.wait()
    if number == self._end:
      raise self._error
    return np.int64(number)


def dataset_record(count: int) -> tf.Tensor:
  """Returns a scalar int64 tensor that yields 0 to `count` - 1; then the data ends."""
  dataset = tf.compat.v1.data.Dataset.range(count)
  return tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()


def drain(sess, fetches) -> list:
  """Runs steps to the end of the data.

  Args:
    sess: A session or monitored session.
    fetches: The fetches of each step.

  Returns:
    The fetched values of each step.
  """
  results = []
  while True:
    try:
      results.append(sess.run(fetches))
    except tf.errors.OutOfRangeError:
      return results


def wait_until(condition: Callable[[], bool]) -> None:
  """Waits until a condition holds; fails after `WAIT_SECONDS`."""
  deadline = time.monotonic() + WAIT_SECONDS
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.001)


def resident_bytes() -> int:
  """Returns the resident memory of this process, without its garbage and without what the allocator keeps free."""
  gc.collect()
  ctypes.CDLL(None).malloc_trim(0)
  pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
  return pages * os.sysconf("SC_PAGE_SIZE")


def stage_threads(process: int | str = "self") -> list[str]:
  """Returns the names of the threads of a process, by default this one, that belong to a stage.

  In another process, threads of TensorFlow's pools that a stage's thread has begun have its name, and count.
  """
  names = []
  for comm in pathlib.Path(f"/proc/{process}/task").glob("*/comm"):
    try:
      names.append(comm.read_text().strip())
    except OSError:  # The thread has ended in the meantime.
      continue
  names = [name for name in names if name.startswith(_THREAD_PREFIX)]
  return names[:_pywrap_staging.num_stage_threads()] if process == "self" else names


def assert_no_stage_thread(process: int | str = "self") -> None:
  """Fails if a process still has a thread that belongs to a stage.

  Waits a moment first, because the kernel may list a thread for a moment after it has been joined.

  Args:
    process: The ID of the process, by default this one.
  """
  deadline = time.monotonic() + _KERNEL_SECONDS
  while stage_threads(process) and time.monotonic() < deadline:
    os.sched_yield()
  assert not stage_threads(process)


def num_threads() -> int:
  """Returns the number of threads of this process, those of TensorFlow included."""
  return len(os.listdir("/proc/self/task"))


def assert_no_more_threads_than(count: int) -> None:
  """Fails if this process still has more than `count` threads after `WAIT_SECONDS`.

  The threads of the last session, and the thread that watches for Ctrl-C, end soon after the session.
  """
  wait_until(lambda: num_threads() <= count)


def run_program(
    source: str, folder: pathlib.Path, *, api_version: str = "1", **environment: str) -> str:
  """Runs a Python program in its own process, which sees the installed wheel and not the source tree.

  Args:
    source: The program's text; its common indentation is removed.
    folder: The folder in which the program is written and run.
    api_version: The API that `import tensorflow` gives: "1" or "2".
    **environment: Further environment variables.

  Returns:
    The program's standard output.
  """
  program = folder / "program.py"
  program.write_text(textwrap.dedent(source))
  return run([sys.executable, program.name], folder, TF_API_VERSION=api_version, **environment)


def run(command: list, folder: pathlib.Path, **environment: str) -> str:
  """Runs a command that must succeed, and returns its standard output."""
  return completed(command, folder, **environment).stdout


def start(
    command: list, folder: pathlib.Path, *, log: pathlib.Path | None = None, **environment: str) -> subprocess.Popen:
  """Starts a command, with a pipe for each of its outputs.

  Args:
    command: The words of the command.
    folder: The folder in which it runs.
    log: A file to which its stderr is appended, instead of a pipe.
    **environment: Variables that differ from those of this process.

  Returns:
    The process.
  """
  with contextlib.nullcontext(subprocess.PIPE) if log is None else log.open("a") as stderr:
    return subprocess.Popen(
        [str(word) for word in command], cwd=folder, env=program_environment.without_source_tree() | environment,
        stdout=subprocess.PIPE, stderr=stderr, text=True)


def completed(
    command: list, folder: pathlib.Path, **environment: str) -> subprocess.CompletedProcess[str]:
  """Runs a command that must succeed, and returns its exit status and both of its outputs."""
  done = subprocess.run(
      [str(word) for word in command], cwd=folder, env=program_environment.without_source_tree() | environment,
      capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False)
  assert done.returncode == 0, f"{command} exited with status {done.returncode}:\n{done.stderr[-8000:]}"
  return done

