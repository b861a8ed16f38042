# SPDX-License-Identifier: Apache-2.0
"""Pieces that several tests share."""

import os
import pathlib
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import tensorflow as tf

# How long a test waits for an event that is about to happen.
WAIT_SECONDS = 30
# How long a program that a test starts may take.
PROGRAM_SECONDS = 150

TESTDATA = pathlib.Path(__file__).parent / "testdata"
ROOT = pathlib.Path(__file__).parents[3]

# How long the kernel may take to forget a thread.
_KERNEL_SECONDS = 1

# How the names of a runner's threads begin, as the kernel knows them.
_THREAD_PREFIX = "stage_"


class Source:
  """Records from a Python function: 0, 1, 2 and so on.

  A test can wait until a record is asked for, hold production back, or let it fail.
  """

  def __init__(self, end: int | None = None, error: Exception | None = None):
    """Makes a source.

    Args:
      end: After how many records the data ends; None is never.
      error: What is raised then instead, if anything.
    """
    self._end = end
    self._error = error or StopIteration()
    self._asked = 0
    self._changed = threading.Condition()
    self._open = threading.Event()
    self._open.set()

  def tensor(self, name: str | None = None) -> tf.Tensor:
    """A scalar int64 tensor, the next record each time it is computed."""
    record = tf.numpy_function(self._next, [], tf.int64, name=name)
    record.set_shape([])
    return record

  def wait_until_asked(self, count: int) -> None:
    """Returns when production of the record number `count`, from 1, has begun."""
    with self._changed:
      assert self._changed.wait_for(lambda: self._asked >= count, WAIT_SECONDS), self._asked

  def hold(self) -> None:
    """Holds back every record from the next one on."""
    self._open.clear()

  def release(self) -> None:
    """Lets records through again."""
    self._open.set()

  def _next(self) -> np.int64:
    with self._changed:
      number = self._asked
      self._asked += 1
      self._changed.notify_all()
    self._open.wait()
    if number == self._end:
      raise self._error
    return np.int64(number)


def dataset_record(count: int) -> tf.Tensor:
  """The scalar int64 tensor that yields 0 to `count` - 1 and then ends."""
  dataset = tf.compat.v1.data.Dataset.range(count)
  return tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()


def drain(sess, fetches) -> list:
  """Runs `fetches` to the end of the data.

  Args:
    sess: A session or monitored session.
    fetches: What to run.

  Returns:
    What each run returned.
  """
  results = []
  while True:
    try:
      results.append(sess.run(fetches))
    except tf.errors.OutOfRangeError:
      return results


def stage_threads(process: int | str = "self") -> list[str]:
  """The names of the threads of a process, by default this one, that belong to a stage."""
  names = []
  for comm in pathlib.Path(f"/proc/{process}/task").glob("*/comm"):
    try:
      names.append(comm.read_text().strip())
    except OSError:  # The thread has ended meanwhile.
      continue
  return [name for name in names if name.startswith(_THREAD_PREFIX)]


def assert_no_stage_thread(process: int | str = "self") -> None:
  """Fails if a thread of a stage is there.

  The kernel may list a thread for a moment after it has been joined.

  Args:
    process: The number of the process that is looked at.
  """
  deadline = time.monotonic() + _KERNEL_SECONDS
  while stage_threads(process) and time.monotonic() < deadline:
    os.sched_yield()
  assert not stage_threads(process)


def run_program(
    source: str, folder: pathlib.Path, *, api_version: str = "1", **environment: str) -> str:
  """Runs Python in a process of its own, with the wheel and nothing of the source tree.

  Args:
    source: The program's text; common indentation is removed.
    folder: Where it is written and run.
    api_version: Which root `import tensorflow` gives: "1" or "2".
    **environment: More environment variables.

  Returns:
    What it wrote to standard output.
  """
  program = folder / "program.py"
  program.write_text(textwrap.dedent(source))
  return run([sys.executable, program.name], folder, TF_API_VERSION=api_version, **environment)


def run(command: list, folder: pathlib.Path, **environment: str) -> str:
  """Runs a command that must succeed, and returns what it wrote to standard output."""
  return completed(command, folder, **environment).stdout


def completed(
    command: list, folder: pathlib.Path, **environment: str) -> subprocess.CompletedProcess[str]:
  """Runs a command that must succeed, and returns all that is known of it."""
  inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
  done = subprocess.run(
      [str(word) for word in command], cwd=folder, env=inherited | environment,
      capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False)
  assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stderr[-8000:]}"
  return done
