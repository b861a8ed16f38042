# SPDX-License-Identifier: Apache-2.0
"""Lets Ctrl-C end a step while the main thread waits inside `sess.run` for a record.

Python runs signal handlers in the main thread, between two Python instructions; while that thread
is in C++, no handler runs. The signal therefore wakes a thread of this module, which checks whether
the main thread handles the signal soon. If it does not, this thread stops the stages, the step that
waits for them fails, and Python raises KeyboardInterrupt in place of the step's error.

This happens only while the handler of SIGINT is `signal.default_int_handler`, which interrupts the
program anyway: a program with another handler may want to continue. A program that uses
`signal.set_wakeup_fd` itself keeps its file descriptor.
"""

import ctypes
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from typing import Optional

# The module from which a step enters C++.
_SESSION_MODULE = "tensorflow.python.client.session"
# How long the main thread may take to return to Python by itself.
_PATIENCE_SECONDS = 0.2
# How often the thread checks whether it is still needed: a session may close without notifying Python.
_CHECK_MILLIS = 1000
# The byte that makes the thread check at once. No signal has this number.
_CHECK_NOW = b"\0"
# The default capacity of a pipe.
_PIPE_BYTES = 65536
# Part of pybind11's message when Python handled Ctrl-C while pybind11 created an error.
_REPLACED = "REPLACED BY KeyboardInterrupt"


def raise_if_interrupted(error: RuntimeError) -> None:
  """Raises KeyboardInterrupt if pybind11 reported one as a RuntimeError.

  The first Python code that runs after a step has failed creates the step's error. If Ctrl-C
  arrived before, Python handles it at that point, and pybind11 raises a third error, which says that
  KeyboardInterrupt replaced the step's error.

  Args:
    error: The error that the call of the step raised.

  Raises:
    KeyboardInterrupt: If `error` is such an error of pybind11.
  """
  if _REPLACED in str(error):
    raise KeyboardInterrupt from None


class InterruptWatch:
  """On Ctrl-C, stops whatever the main thread waits for. Safe to use from several threads.

  One object serves a process. Its thread runs only while there is something to stop. Its pipe stays
  open: if it were closed, Python could write a signal to another file with the same descriptor.
  """

  def __init__(self, needed: Callable[[], bool], stop: Callable[[], None]):
    """Creates a watch; `begin` starts it.

    Args:
      needed: Returns whether there is anything to stop.
      stop: Stops it; may take a few seconds.
    """
    self._needed = needed
    self._stop = stop
    self._reset()
    os.register_at_fork(after_in_child=self._after_fork)

  def begin(self) -> None:
    """Starts the thread if it does not run, this is the main thread, and the wakeup fd is free."""
    if threading.current_thread() is not threading.main_thread():
      return
    with self._lock:
      if self._pipe is None:
        self._pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
      if self._thread is None and _take_wakeup_fd(self._pipe[1]):
        _read(self._pipe[0])  # Discards old signals: Python has handled them.
        # A daemon thread does not keep the program alive.
        self._thread = threading.Thread(
            target=self._watch, args=[self._pipe[0]], name="staging_interrupt", daemon=True)
        self._thread.start()

  def end_if_not_needed(self) -> None:
    """Ends the thread if there is nothing to stop; in the main thread, also releases the wakeup fd."""
    with self._lock:
      if self._pipe is None or self._needed():
        return
      thread, self._thread = self._thread, None
      if threading.current_thread() is threading.main_thread():
        _release_wakeup_fd(self._pipe[1])
      if thread is not None:
        _check_now(self._pipe[1])
    if thread is not None:
      thread.join()

  def _reset(self) -> None:
    self._lock = threading.Lock()
    self._pipe: Optional[tuple[int, int]] = None  # Guarded by _lock.
    self._thread: Optional[threading.Thread] = None  # Guarded by _lock.

  def _after_fork(self) -> None:
    """Resets the watch in a child process, which has no thread and whose pipe wakes the parent's thread."""
    pipe = self._pipe
    self._reset()
    if pipe is not None:
      _release_wakeup_fd(pipe[1])
      for fd in pipe:
        os.close(fd)

  def _watch(self, pipe: int) -> None:
    ready = select.poll()
    ready.register(pipe, select.POLLIN)
    while True:
      ready.poll(_CHECK_MILLIS)
      if signal.SIGINT in _read(pipe) and _sigint_interrupts() and _main_thread_hangs_in_a_step():
        self._stop()
      with self._lock:
        if self._thread is not threading.current_thread():
          return
        if not self._needed():
          self._thread = None
          return


def _read(pipe: int) -> bytes:
  """Returns everything that is in the pipe, without waiting."""
  try:
    return os.read(pipe, _PIPE_BYTES)
  except BlockingIOError:
    return b""


def _check_now(pipe: int) -> None:
  """Makes the thread check whether it is still needed."""
  try:
    os.write(pipe, _CHECK_NOW)
  except BlockingIOError:  # The pipe is full, so the thread is awake.
    pass


def _take_wakeup_fd(fd: int) -> bool:
  """Makes Python write the numbers of signals to `fd`, unless another wakeup fd is set.

  Returns:
    Whether `fd` is the wakeup fd now.
  """
  previous = signal.set_wakeup_fd(fd, warn_on_full_buffer=False)
  if previous in (-1, fd):
    return True
  signal.set_wakeup_fd(previous)
  return False


def _release_wakeup_fd(fd: int) -> None:
  """Undoes `_take_wakeup_fd`, unless another wakeup fd has been set since."""
  current = signal.set_wakeup_fd(-1)
  if current not in (-1, fd):
    signal.set_wakeup_fd(current)


def _sigint_interrupts() -> bool:
  """Returns whether SIGINT raises KeyboardInterrupt."""
  return signal.getsignal(signal.SIGINT) is signal.default_int_handler


_main_thread_ran_python = threading.Event()


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
def _note_main_thread(_: Optional[int]) -> int:
  """Called by the main thread when it runs Python; global, because the call may come late."""
  _main_thread_ran_python.set()
  return 0


def _main_thread_hangs_in_a_step() -> bool:
  """Returns whether the main thread is in a session and does not run Python within `_PATIENCE_SECONDS`."""
  _main_thread_ran_python.clear()
  ctypes.pythonapi.Py_AddPendingCall(_note_main_thread, None)
  if _main_thread_ran_python.wait(_PATIENCE_SECONDS):
    return False
  # The main thread may have handled the signal already, and now wait for something other than a step.
  frame = sys._current_frames().get(threading.main_thread().ident)
  return frame is not None and frame.f_globals.get("__name__") == _SESSION_MODULE
