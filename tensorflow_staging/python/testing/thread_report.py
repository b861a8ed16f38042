# SPDX-License-Identifier: Apache-2.0
"""Which threads a step runs on, for the tests of stage thread pools."""

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

# How long threads may take to appear and to disappear.
_KERNEL_SECONDS = 5


class Threads(NamedTuple):
  """Of each step: the inter-op thread that ran the op, and an intra-op thread that it used."""

  names: tf.Tensor | np.ndarray  # As TensorFlow's Env knows them.
  kernel_names: tf.Tensor | np.ndarray  # As /proc/self/task/*/comm tells.
  cores: tf.Tensor | np.ndarray


@functools.cache
def _library():
  with tempfile.TemporaryDirectory() as folder:
    shutil.copy(test_util.TESTDATA / "report_threads_op.cc", folder)
    test_util.run(
        ["g++", "-shared", "-fPIC", "-O1", "report_threads_op.cc", "-o", "report_threads_op.so",
         *tf.sysconfig.get_compile_flags(), *tf.sysconfig.get_link_flags()], pathlib.Path(folder))
    return tf.load_op_library(os.path.join(folder, "report_threads_op.so"))


def report() -> Threads:
  """Adds an op that reports the threads of each step that it is part of."""
  return Threads(*_library().report_threads())


def config(*names: str, cores: tuple[int, ...] = ()) -> tf.ConfigProto:
  """A configuration with a pool of one inter-op and one intra-op thread for each name.

  Args:
    *names: Each pool's `global_name`.
    cores: The cores that every pool is pinned to, if any.
  """
  proto = tf.ConfigProto()
  for name in names:
    proto.session_stage_subgraph_thread_pool.add(
        inter_op_threads_num=1, intra_op_threads_num=1, global_name=name, cpu_affinity=cores)
  return proto


def on_pool(pool: int) -> tf.RunOptions:
  """The options of a run that takes this pool."""
  return tf.RunOptions(use_stage_subgraph_thread_pool=True, stage_subgraph_thread_pool_id=pool)


def assert_on_pool(threads: Threads, name: str) -> None:
  """Fails unless both threads are the pool's, by TensorFlow's names and by the kernel's."""
  for i, kind in enumerate([b"inter", b"intra"]):
    whole = b"%s_%s_op" % (name.encode(), kind)
    assert whole in threads.names[i], threads
    assert threads.kernel_names[i] == whole[:15], threads


def assert_on_session(threads: Threads) -> None:
  """Fails unless both threads are the session's own."""
  assert b"tf_Compute" in threads.names[0], threads
  assert b"Eigen" in threads.names[1], threads


def assert_pool_threads(name: str, count: int) -> list[int]:
  """Fails unless there are as many threads of pools of this name.

  A thread names itself when it has started, and the kernel may list it for a moment after it has been joined.

  Returns:
    Their ids.
  """
  deadline = time.monotonic() + _KERNEL_SECONDS
  while len(pool_threads(name)) != count and time.monotonic() < deadline:
    os.sched_yield()
  found = pool_threads(name)
  assert len(found) == count, found
  return found


def pool_threads(name: str) -> list[int]:
  """The ids of this process's threads whose kernel name begins with `name`."""
  found = []
  for comm in pathlib.Path("/proc/self/task").glob("*/comm"):
    try:
      if comm.read_text().startswith(name):
        found.append(int(comm.parent.name))
    except OSError:  # The thread has ended meanwhile.
      continue
  return found
