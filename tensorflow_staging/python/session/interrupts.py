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

import contextlib
import ctypes
import os
import queue
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
# How long the main thread waits for the end of the thread, which may be stopping the stages.
_END_PATIENCE_SECONDS = 5
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
  """On Ctrl-C, stops whatever the main thread waits for. Safe to use from several threads, and in signal handlers.

  One object serves a process. Its thread runs only while there is something to stop. Its pipe stays
  open: if it were closed, Python could write a signal to another file with the same descriptor.

  There is no lock. A signal handler may use the watch while it interrupts the main thread in any of these methods: it
  would wait for a lock that the main thread holds, and so would the thread for whose end the handler waits. Instead,
  the main thread alone says which thread watches, and that thread alone decides when it is no longer needed.
  """

  def __init__(self, needed: Callable[[], bool], stop: Callable[[], None]):
    """Creates a watch; `begin` starts it.

    Args:
      needed: Returns whether there is anything to stop. Waits for no other thread.
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
    if not self._pipes:
      self._pipes.append(os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC))
    reading, writing = self._pipes[0]
    if not _take_wakeup_fd(writing):
      return
    watching = self._thread
    if watching is None or watching.leaves:
      _read(reading)  # Discards old signals: Python has handled them.
      # Before it starts: it ends at once if another one is to watch, or none.
      self._thread = thread = _WatchThread(self._watch)
      thread.start()

  def end_if_not_needed(self) -> None:
    """Ends the thread if there is nothing to stop; the main thread waits for that, and releases the wakeup fd."""
    if not self._pipes or self._needed():
      return
    _, writing = self._pipes[0]
    if threading.current_thread() is not threading.main_thread():
      _check_now(writing)
      return
    thread, self._thread = self._thread, None
    _release_wakeup_fd(writing)
    if self._needed():
      # A signal handler, or another thread, has started stages meanwhile.
      self.begin()
    if thread is not None and thread.is_alive():
      _check_now(writing)
      thread.join(_END_PATIENCE_SECONDS)

  def _reset(self) -> None:
    # The first one is in use; another one is there if a signal handler began while the main thread did.
    self._pipes: list[tuple[int, int]] = []
    self._thread: Optional[_WatchThread] = None  # Only the main thread changes it.

  def _after_fork(self) -> None:
    """Resets the watch in a child process, which has no thread and whose pipe wakes the parent's thread."""
    pipes = self._pipes
    self._reset()
    for pipe in pipes:
      _release_wakeup_fd(pipe[1])
      for fd in pipe:
        os.close(fd)

  def _watch(self, thread: "_WatchThread") -> None:
    pipe, _ = self._pipes[0]
    ready = select.poll()
    ready.register(pipe, select.POLLIN)
    thread.leaves = False
    while self._thread is thread:
      ready.poll(_CHECK_MILLIS)
      if signal.SIGINT in _read(pipe) and _sigint_interrupts() and _main_thread_hangs_in_a_step():
        self._stop()
      # In this order: whoever begins after the thread has found nothing starts another one.
      thread.leaves = True
      if not self._needed():
        return
      thread.leaves = False


class _WatchThread(threading.Thread):
  """The thread of a watch.

  Attributes:
    leaves: Whether it may watch no longer, or not yet.
  """

  def __init__(self, watch: Callable[["_WatchThread"], None]):
    # A daemon thread does not keep the program alive.
    super().__init__(name="staging_interrupt", daemon=True)
    self._watch = watch
    self.leaves = True

  def run(self) -> None:
    self._watch(self)


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


# Gets an entry when the main thread runs Python. An event has a lock: a signal handler could interrupt the main thread
# while that holds it, and wait for the thread that waits for the event.
_main_thread_ran_python: "queue.SimpleQueue[None]" = queue.SimpleQueue()


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
def _note_main_thread(_: Optional[int]) -> int:
  """Called by the main thread when it runs Python; global, because the call may come late."""
  _main_thread_ran_python.put(None)
  return 0


def _main_thread_hangs_in_a_step() -> bool:
  """Returns whether the main thread is in a session and does not run Python within `_PATIENCE_SECONDS`."""
  with contextlib.suppress(queue.Empty):
    while True:
      _main_thread_ran_python.get_nowait()
  ctypes.pythonapi.Py_AddPendingCall(_note_main_thread, None)
  with contextlib.suppress(queue.Empty):
    _main_thread_ran_python.get(timeout=_PATIENCE_SECONDS)
    return False
  # The main thread may have handled the signal already, and now wait for something other than a step.
  frame = sys._current_frames().get(threading.main_thread().ident)
  return frame is not None and frame.f_globals.get("__name__") == _SESSION_MODULE
