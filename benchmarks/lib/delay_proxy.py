#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forwards TCP connections on this machine with a delay: `delay_proxy.py --delay SECONDS TARGET_PORT ...`.

Prints, on one line, a port for each target port, and forwards until its standard input ends. It is a process of its
own, so that its threads do not share an interpreter with what they delay.
"""

from __future__ import annotations

import argparse
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from types import TracebackType

_CHUNK_BYTES = 1 << 18
_HOST = "127.0.0.1"


class DelayProxy:
  """Runs the proxy in a process of its own, which ends with the context."""

  def __init__(self, targets: Sequence[int], delay: float):
    """Remembers what to forward.

    Args:
      targets: The ports to which to forward.
      delay: The seconds that data is under way, in each direction.
    """
    self._command = [sys.executable, __file__, f"--delay={delay}", *map(str, targets)]
    self._process: subprocess.Popen | None = None

  def __enter__(self) -> list[int]:
    """Starts the process; returns a port for each target."""
    self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return [int(port) for port in self._process.stdout.readline().split()]

  def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
    """Ends the process."""
    self._process.kill()
    self._process.communicate()


def _serve(listener: socket.socket, target: int, delay: float) -> None:
  while True:
    near, _ = listener.accept()
    far = socket.create_connection((_HOST, target))
    for source, sink in ((near, far), (far, near)):
      source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
      due: queue.SimpleQueue = queue.SimpleQueue()
      threading.Thread(target=_receive, args=(source, due, delay), daemon=True).start()
      threading.Thread(target=_send, args=(sink, due), daemon=True).start()


def _receive(source: socket.socket, due: queue.SimpleQueue, delay: float) -> None:
  """Puts what arrives into the queue, with the time at which it is to go on; at the end, no bytes."""
  data = b"first"
  while data:
    try:
      data = source.recv(_CHUNK_BYTES)
    except OSError:
      data = b""
    due.put((time.monotonic() + delay, data))


def _send(sink: socket.socket, due: queue.SimpleQueue) -> None:
  while True:
    when, data = due.get()
    wait = when - time.monotonic()
    if wait > 0:
      time.sleep(wait)
    try:
      if not data:
        sink.shutdown(socket.SHUT_WR)
        return
      sink.sendall(data)
    except OSError:
      return


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--delay", type=float, required=True, help="seconds, in each direction")
  parser.add_argument("targets", type=int, nargs="+", metavar="TARGET_PORT", help="where to forward")
  arguments = parser.parse_args()
  listeners = [socket.create_server((_HOST, 0)) for _ in arguments.targets]
  for listener, target in zip(listeners, arguments.targets, strict=True):
    threading.Thread(target=_serve, args=(listener, target, arguments.delay), daemon=True).start()
  print(*(listener.getsockname()[1] for listener in listeners), flush=True)
  sys.stdin.read()


if __name__ == "__main__":
  main()
