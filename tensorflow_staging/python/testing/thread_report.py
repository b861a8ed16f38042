# SPDX-License-Identifier: Apache-2.0
"""Reports the threads on which a step runs, for the tests of stage thread pools."""

from __future__ import annotations

import functools
import os
import pathlib
import shutil
import tempfile
import time
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tensorflow_staging.python.testing import test_util

# How long a thread may take to appear under its name, and to disappear.
_KERNEL_SECONDS = 5


class Threads(NamedTuple):
  """Two threads of a step: the inter-op thread that ran the op, then an intra-op thread that it used."""

  names: tf.Tensor | np.ndarray  # In TensorFlow's Env.
  kernel_names: tf.Tensor | np.ndarray  # In /proc/self/task/*/comm.
  cores: tf.Tensor | np.ndarray  # The cores on which they ran.


@functools.cache
def _library():
  with tempfile.TemporaryDirectory() as folder:
    shutil.copy(test_util.TESTDATA / "report_threads_op.cc", folder)
    test_util.run(
        ["g++", "-shared", "-fPIC", "-O1", "report_threads_op.cc", "-o", "report_threads_op.so",
         *tf.sysconfig.get_compile_flags(), *tf.sysconfig.get_link_flags()], pathlib.Path(folder))
    return tf.load_op_library(os.path.join(folder, "report_threads_op.so"))


@functools.cache
def _start_tensorflows_pools() -> None:
  """Lets TensorFlow start the threads of its own that it starts when a process first runs Python in a step.

  A thread of a stage's pool that starts them gives them its kernel name, and they seem to belong to the pool.
  """
  with tf.Graph().as_default(), tf.Session() as sess:
    sess.run(tf.numpy_function(lambda: None, [], []))


def report() -> Threads:
  """Adds an op that reports the threads of each step that runs it."""
  _start_tensorflows_pools()
  return Threads(*_library().report_threads())


def kernel_name(after: tf.Tensor) -> tf.Tensor:
  """Returns the kernel's name of the inter-op thread on which Python runs in each step, once `after` is computed.

  SmartStage runs it ahead of the step with `after`.
  """
  def read(_):
    return np.bytes_(pathlib.Path("/proc/thread-self/comm").read_text().strip())

  return tf.ensure_shape(tf.numpy_function(read, [after], tf.string, stateful=False), [])


def config(*names: str, cores: tuple[int, ...] = ()) -> tf.ConfigProto:
  """Returns a configuration with one pool per name, each with one inter-op and one intra-op thread.

  Args:
    *names: Each pool's `global_name`.
    cores: The cores to which every pool is pinned; if empty, the pools are not pinned.
  """
  proto = tf.ConfigProto()
  for name in names:
    proto.session_stage_subgraph_thread_pool.add(
        inter_op_threads_num=1, intra_op_threads_num=1, global_name=name, cpu_affinity=cores)
  return proto


def on_pool(pool: int) -> tf.RunOptions:
  """Returns the options of a run that uses the pool with this index."""
  return tf.RunOptions(use_stage_subgraph_thread_pool=True, stage_subgraph_thread_pool_id=pool)


def assert_on_pool(threads: Threads, name: str) -> None:
  """Fails unless both threads belong to the pool, by TensorFlow's names and by the kernel's."""
  for i, kind in enumerate([b"inter", b"intra"]):
    whole = b"%s_%s_op" % (name.encode(), kind)
    assert whole in threads.names[i], threads
    assert threads.kernel_names[i] == whole[:15], threads


def assert_on_session(threads: Threads) -> None:
  """Fails unless both threads are the session's own threads."""
  assert b"tf_Compute" in threads.names[0], threads
  assert b"Eigen" in threads.names[1], threads


def assert_pool_threads(name: str, count: int, process: int | str = "self") -> list[int]:
  """Fails unless exactly `count` threads have a kernel name that begins with `name`.

  Waits for them first: a thread takes its name only after it has started, and the kernel may list it for a moment
  after it has been joined.

  Args:
    name: The beginning of their names.
    count: How many there should be.
    process: The ID of their process, by default this one.

  Returns:
    The IDs of the threads.
  """
  deadline = time.monotonic() + _KERNEL_SECONDS
  while len(pool_threads(name, process)) != count and time.monotonic() < deadline:
    os.sched_yield()
  found = pool_threads(name, process)
  assert len(found) == count, found
  return found


def pool_threads(name: str, process: int | str = "self") -> list[int]:
  """Returns the IDs of a process's threads, by default of this one, whose kernel name begins with `name`."""
  found = []
  for comm in pathlib.Path(f"/proc/{process}/task").glob("*/comm"):
    try:
      if comm.read_text().startswith(name):
        found.append(int(comm.parent.name))
    except OSError:  # The thread has ended in the meantime.
      continue
  return found
