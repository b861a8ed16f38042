# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while the main thread waits inside `sess.run` for a record that does not come.

Python handles a signal in its main thread, between two of its instructions. While that thread is in
C++, nothing is handled. So a thread of our own, woken by the signal, looks whether the main thread
gets to it; if not, it stops the stages, the step that waits for them fails, and Python raises
KeyboardInterrupt in its place.

That is all for `signal.default_int_handler`, which interrupts the program anyway: who installs a
handler of his own may want to go on, and who uses `signal.set_wakeup_fd` himself keeps it.
"""

import ctypes
import os
import select
import signal
import sys
import threading
from collections.abc import Callable

# From where a step enters C++.
_SESSION_MODULE = "tensorflow.python.client.session"
# How long the main thread may take to come back to Python by itself.
_PATIENCE_SECONDS = 0.2
# How often the thread looks whether it is needed. Sessions close without telling Python.
_LOOK_MILLIS = 1000
# What is written to the pipe to have the thread look now. No signal has this number.
_LOOK = b"\0"
# What a pipe holds, unless it is asked for more.
_PIPE_BYTES = 65536
# What pybind11 says of an error during whose making Python handled Ctrl-C.
_REPLACED = "REPLACED BY KeyboardInterrupt"


def raise_if_interrupted(error: RuntimeError) -> None:
  """Raises the KeyboardInterrupt that an error of a step stands for.

  The first Python code that runs after a step has failed is that of the step's error itself. If
  Ctrl-C has come meanwhile, Python handles it there, and pybind11 reports that the one error has
  become the other, as a third.

  Args:
    error: What the call of the step raised.

  Raises:
    KeyboardInterrupt: If that is what has happened.
  """
  if _REPLACED in str(error):
    raise KeyboardInterrupt from None


class InterruptWatch:
  """Stops what the main thread waits for when Ctrl-C comes. Safe to use from several threads.

  One object serves a process. Its thread is there only while something has to be watched, its pipe
  remains: were it closed, a signal could be written to whoever has the number next.
  """

  def __init__(self, needed: Callable[[], bool], stop: Callable[[], None]):
    """Makes a watch that does nothing yet.

    Args:
      needed: Tells whether there is anything to stop.
      stop: Stops it; may take some seconds.
    """
    self._needed = needed
    self._stop = stop
    self._forget()
    os.register_at_fork(after_in_child=self._after_fork)

  def begin(self) -> None:
    """Begins to watch, if that is possible: in the main thread, and nobody else has the wakeup fd."""
    if threading.current_thread() is not threading.main_thread():
      return
    with self._lock:
      if self._pipe is None:
        self._pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
      if self._thread is None and _take_wakeup_fd(self._pipe[1]):
        _read(self._pipe[0])  # What came while nobody was there has been handled since.
        # A daemon: it does not keep the program alive.
        self._thread = threading.Thread(
            target=self._watch, args=[self._pipe[0]], name="staging_interrupt", daemon=True)
        self._thread.start()

  def end_if_not_needed(self) -> None:
    """Ends the thread, and in the main thread gives the wakeup fd back, if there is nothing to stop."""
    with self._lock:
      if self._pipe is None or self._needed():
        return
      thread, self._thread = self._thread, None
      if threading.current_thread() is threading.main_thread():
        _give_wakeup_fd_back(self._pipe[1])
      if thread is not None:
        _wake(self._pipe[1])
    if thread is not None:
      thread.join()

  def _forget(self) -> None:
    self._lock = threading.Lock()
    self._pipe: tuple[int, int] | None = None  # Guarded by _lock.
    self._thread: threading.Thread | None = None  # Guarded by _lock.

  def _after_fork(self) -> None:
    """Lets a child process begin anew: it has no thread, and the pipe wakes its parent's."""
    pipe = self._pipe
    self._forget()
    if pipe is not None:
      _give_wakeup_fd_back(pipe[1])
      for fd in pipe:
        os.close(fd)

  def _watch(self, pipe: int) -> None:
    ready = select.poll()
    ready.register(pipe, select.POLLIN)
    while True:
      ready.poll(_LOOK_MILLIS)
      if signal.SIGINT in _read(pipe) and _interrupts() and _main_thread_hangs_in_a_step():
        self._stop()
      with self._lock:
        if self._thread is not threading.current_thread():
          return
        if not self._needed():
          self._thread = None
          return


def _read(pipe: int) -> bytes:
  """All that has been written to the pipe, without waiting."""
  try:
    return os.read(pipe, _PIPE_BYTES)
  except BlockingIOError:
    return b""


def _wake(pipe: int) -> None:
  """Has the thread look whether it is needed."""
  try:
    os.write(pipe, _LOOK)
  except BlockingIOError:  # It is full, so the thread is awake.
    pass


def _take_wakeup_fd(fd: int) -> bool:
  """Has the numbers of signals written to `fd`, unless another fd has been set."""
  previous = signal.set_wakeup_fd(fd, warn_on_full_buffer=False)
  if previous in (-1, fd):
    return True
  signal.set_wakeup_fd(previous)
  return False


def _give_wakeup_fd_back(fd: int) -> None:
  """Undoes `_take_wakeup_fd`, unless another fd has been set since."""
  current = signal.set_wakeup_fd(-1)
  if current not in (-1, fd):
    signal.set_wakeup_fd(current)


def _interrupts() -> bool:
  """Whether SIGINT is going to raise KeyboardInterrupt."""
  return signal.getsignal(signal.SIGINT) is signal.default_int_handler


_came_by = threading.Event()


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
def _note(_: int | None) -> int:
  """Called by the main thread, when it runs Python; may be late, so it lives as long as Python."""
  _came_by.set()
  return 0


def _main_thread_hangs_in_a_step() -> bool:
  """Whether the main thread is in a session, and does not run Python within `_PATIENCE_SECONDS`."""
  _came_by.clear()
  ctypes.pythonapi.Py_AddPendingCall(_note, None)
  if _came_by.wait(_PATIENCE_SECONDS):
    return False
  # It may have handled the signal already, and wait for something else since.
  frame = sys._current_frames().get(threading.main_thread().ident)
  return frame is not None and frame.f_globals.get("__name__") == _SESSION_MODULE
