# SPDX-License-Identifier: Apache-2.0
"""Packs files into pieces of limited size, and unpacks them.

The pieces in their order are one .tar.zst file, so `cat PIECES | tar x --zstd` unpacks them too. It has many short
frames, and each piece has whole ones: several processors can pack, and unpack, at the same time.
"""

from __future__ import annotations

import collections
import concurrent.futures
import io
import os
import pathlib
import sys
import tarfile
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

import zstandard

# The bytes that are compressed at once. More would hardly pack better: libraries do not repeat at this distance.
_CHUNK_BYTES = 16 << 20
# More than zstd can add to bytes that it cannot compress.
_CHUNK_OVERHEAD = 1 << 16


def pack(
    files: Iterable[tuple[str, pathlib.Path]],
    folder: pathlib.Path,
    name: str,
    limit: int,
    chunk: int = _CHUNK_BYTES,
    level: int = 19,
) -> list[pathlib.Path]:
  """Writes files into pieces. Equal files give equal pieces; owners and times are not packed.

  Args:
    files: The name of each file in the archive, with "/" between its folders, and the file. A symbolic link stays one.
    folder: The folder for the pieces, which exists.
    name: The begin of the pieces' names; a number of three digits follows.
    limit: The largest size of a piece, in bytes.
    chunk: The bytes that are compressed at once; not more than `limit` less 64 KiB.
    level: How hard zstd tries, from 1 to 22.

  Returns:
    The pieces, in their order.

  Raises:
    ValueError: If `chunk` is too large for `limit`.
  """
  if chunk + _CHUNK_OVERHEAD > limit:
    raise ValueError(f"chunks of {chunk} bytes can be larger than a piece of {limit} bytes")
  writer = _Writer(folder, name, limit)
  with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    compress = lambda data: zstandard.ZstdCompressor(level=level, write_checksum=True).compress(data)
    chunks = _Chunks(chunk, lambda data: pool.submit(compress, data), writer.write, 2 * (os.cpu_count() or 1))
    with tarfile.open(fileobj=chunks, mode="w|", bufsize=1 << 20) as archive:
      for arcname, path in files:
        info = archive.gettarinfo(path, arcname)
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        # Hard links would depend on the order of the files.
        if info.islnk():
          info.type, info.size = tarfile.REGTYPE, path.stat().st_size
        if info.isreg():
          with path.open("rb") as source:
            archive.addfile(info, source)
        else:
          archive.addfile(info)
    chunks.finish()
  writer.close()
  return writer.paths


def unpack(pieces: Iterable[pathlib.Path], folder: pathlib.Path, workers: int = 4) -> None:
  """Unpacks pieces into a folder.

  Args:
    pieces: All pieces, in their order.
    folder: The folder, which exists.
    workers: How many pieces are decompressed at the same time; each needs its unpacked size in memory.

  Raises:
    ValueError: If a piece is damaged, or they are not in their order.
  """
  try:
    with tarfile.open(fileobj=_Joined(_decompressed(pieces, workers)), mode="r|", bufsize=1 << 20,
                      copybufsize=1 << 20) as archive:
      archive.extractall(folder)
  except (zstandard.ZstdError, tarfile.TarError) as error:
    raise ValueError(f"the pieces are damaged, or not in their order: {error}") from error


def _decompressed(pieces: Iterable[pathlib.Path], workers: int) -> Iterator[bytes]:
  with concurrent.futures.ThreadPoolExecutor(workers) as pool:
    waiting: collections.deque[concurrent.futures.Future[bytes]] = collections.deque()
    for piece in pieces:
      waiting.append(pool.submit(_decompress, piece))
      if len(waiting) > workers:
        yield waiting.popleft().result()
    while waiting:
      yield waiting.popleft().result()


def _decompress(piece: pathlib.Path) -> bytes:
  parts = []
  data = piece.read_bytes()
  while data:
    frame = zstandard.ZstdDecompressor().decompressobj()
    parts.append(frame.decompress(data))
    if not frame.eof:
      raise zstandard.ZstdError(f"{piece.name} is cut off")
    data = frame.unused_data
  return b"".join(parts)


def main() -> None:
  """Unpacks the pieces named in the arguments into the folder that the last one names."""
  *paths, folder = map(pathlib.Path, sys.argv[1:])
  unpack(paths, folder, workers=min(8, os.cpu_count() or 1))


class _Writer:
  """Writes frames into pieces, whole ones into each."""

  def __init__(self, folder: pathlib.Path, name: str, limit: int):
    self._folder, self._name, self._limit = folder, name, limit
    self._file: io.BufferedWriter | None = None
    self.paths: list[pathlib.Path] = []

  def write(self, stream: bytes) -> None:
    if self._file is None or self._file.tell() + len(stream) > self._limit:
      self.close()
      self.paths.append(self._folder / f"{self._name}{len(self.paths):03}")
      self._file = self.paths[-1].open("wb")
    self._file.write(stream)

  def close(self) -> None:
    if self._file is not None:
      self._file.close()


class _Chunks(io.RawIOBase):
  """A file that hands what is written to it on in chunks, compressed in other threads, in their order."""

  def __init__(
      self,
      size: int,
      compress: Callable[[bytes], concurrent.futures.Future[bytes]],
      write: Callable[[bytes], None],
      ahead: int,
  ):
    self._size, self._compress, self._write, self._ahead = size, compress, write, ahead
    self._data = bytearray()
    self._waiting: collections.deque[concurrent.futures.Future[bytes]] = collections.deque()

  def writable(self) -> bool:
    return True

  def write(self, data: bytes) -> int:
    self._data += data
    while len(self._data) >= self._size:
      self._submit(self._size)
    return len(data)

  def finish(self) -> None:
    if self._data:
      self._submit(len(self._data))
    while self._waiting:
      self._write(self._waiting.popleft().result())

  def _submit(self, size: int) -> None:
    self._waiting.append(self._compress(bytes(self._data[:size])))
    del self._data[:size]
    if len(self._waiting) > self._ahead:
      self._write(self._waiting.popleft().result())


class _Joined(io.RawIOBase):
  """A file to read, made of blocks of bytes."""

  def __init__(self, blocks: Iterator[bytes]):
    self._blocks = blocks
    self._block = memoryview(b"")

  def readable(self) -> bool:
    return True

  def readinto(self, buffer: memoryview) -> int:
    while not self._block:
      block = next(self._blocks, None)
      if block is None:
        return 0
      self._block = memoryview(block)
    size = min(len(buffer), len(self._block))
    buffer[:size] = self._block[:size]
    self._block = self._block[size:]
    return size


if __name__ == "__main__":
  main()
