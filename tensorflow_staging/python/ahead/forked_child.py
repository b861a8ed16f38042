# SPDX-License-Identifier: Apache-2.0
"""What a forked child process must not do with TensorFlow 2: it has none of its parent's threads.

Once TensorFlow has run anything, the child can compute small ops on the CPU, but a `tf.function` waits for ever for the
threads of TensorFlow's pools. So does whatever waits for the threads of a stage.
"""

import ctypes
import os
from typing import Any
from typing import NoReturn

from tensorflow.python.eager import context

# Whether this is the child of a process in which TensorFlow had started its threads.
_lacks_threads = False


def raise_if_it_lacks_threads(name: str) -> None:
  """Raises an error in a process in which a `tf.function` would never return.

  Args:
    name: What would call the function.

  Raises:
    RuntimeError: If this is such a process.
  """
  if _lacks_threads:
    raise RuntimeError(
        f"{name} cannot run in this forked process: TensorFlow's threads are in the process that forked it. Fork before"
        " TensorFlow has run anything, or use multiprocessing with the start method 'spawn'.")


def refuse_read(*_: Any) -> NoReturn:
  """Stands in the place of the methods of an iterator that a stage of the parent reads."""
  raise RuntimeError(
      "The iterator cannot be used in this forked process: the threads that read it are in the process that forked it.")


def keep_for_ever(owner: Any) -> None:
  """Never lets an object be destroyed, not even when the interpreter exits: its destructor would wait for threads."""
  ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))


def _note_fork() -> None:
  global _lacks_threads
  eager = context.context_safe()
  _lacks_threads = _lacks_threads or (eager is not None and eager._initialized)  # pylint: disable=protected-access


os.register_at_fork(after_in_child=_note_fork)
