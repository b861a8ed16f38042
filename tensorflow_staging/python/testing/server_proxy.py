# SPDX-License-Identifier: Apache-2.0
"""A server that does not answer: a proxy that can hold back everything that a client and its server send.

Does not import TensorFlow, so that a test can prepend the text of this file to a program that it runs.
"""

import socket
import threading

# How long a test waits for a client before it fails.
_WAIT_SECONDS = 30
_MAX_BYTES = 65536


class ServerProxy:
  """Forwards the connections of clients to a server, until it is told to hold everything back.

  To a client, a server behind a proxy that holds back is alive, but does not answer. TensorFlow's sessions wait
  for such a server without a limit. `release` ends these waits.
  """

  def __init__(self, server: str):
    """Opens a port on this machine.

    Args:
      server: The address of the server, as `grpc://host:port`.
    """
    host, port = server.removeprefix("grpc://").split(":")
    self._server = (host, int(port))
    self._forwards = threading.Event()
    self._forwards.set()
    self._held_back = threading.Event()
    self._listener = socket.create_server(("127.0.0.1", 0))
    self._lock = threading.Lock()
    self._sockets = [self._listener]  # Guarded by _lock.
    self._threads: list[threading.Thread] = []  # Guarded by _lock.
    self._closed = False  # Guarded by _lock.
    with self._lock:
      self._start_thread(self._accept)

  def __enter__(self) -> "ServerProxy":
    return self

  def __exit__(self, *_) -> None:
    self.close()

  @property
  def target(self) -> str:
    """The address for clients, as `grpc://host:port`."""
    return "grpc://{}:{}".format(*self._listener.getsockname())

  def hold(self) -> None:
    """Holds back everything from now on, until `release`."""
    self._held_back.clear()
    self._forwards.clear()

  def wait_until_held_back(self) -> None:
    """Waits until something that a client or the server has sent is held back."""
    assert self._held_back.wait(_WAIT_SECONDS), "no client has sent anything"

  def release(self) -> None:
    """Forwards what was held back and all that follows."""
    self._forwards.set()

  def close(self) -> None:
    """Ends all connections and threads."""
    with self._lock:
      self._closed = True
      for connection in self._sockets:
        _shut_down(connection)
      threads = list(self._threads)
    self.release()
    for thread in threads:
      thread.join()
    for connection in self._sockets:
      connection.close()

  def _start_thread(self, target, *args) -> None:
    """Starts a thread that `close` joins; the caller holds `_lock`."""
    thread = threading.Thread(target=target, args=args, daemon=True)
    self._threads.append(thread)
    thread.start()

  def _accept(self) -> None:
    while True:
      try:
        client, _ = self._listener.accept()
        server = socket.create_connection(self._server)
      except OSError:
        return
      with self._lock:
        if self._closed:
          client.close()
          server.close()
          return
        self._sockets += [client, server]
        self._start_thread(self._forward, client, server)
        self._start_thread(self._forward, server, client)

  def _forward(self, source: socket.socket, sink: socket.socket) -> None:
    try:
      while data := source.recv(_MAX_BYTES):
        if not self._forwards.is_set():
          self._held_back.set()
          self._forwards.wait()
        sink.sendall(data)
    except OSError:
      pass
    _shut_down(source)
    _shut_down(sink)


def _shut_down(connection: socket.socket) -> None:
  """Wakes the thread that waits for this connection, and makes the other end see that it is closed."""
  try:
    connection.shutdown(socket.SHUT_RDWR)
  except OSError:  # The other end has closed it.
    pass
