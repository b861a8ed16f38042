# SPDX-License-Identifier: Apache-2.0
"""Reads the sections of 64-bit little-endian ELF files."""

from __future__ import annotations

import mmap
import pathlib
import struct
from typing import NamedTuple

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")

_NO_BITS = 8


class Section(NamedTuple):
  """A section's place in the file, in bytes. A section without bytes in the file (.bss) has size 0."""

  name: str
  offset: int
  size: int


class Elf:
  """The sections of an ELF file.

  Args:
    data: The file's bytes, for example an mmap.

  Raises:
    ValueError: If the bytes are not a 64-bit little-endian ELF file with sections.
  """

  def __init__(self, data: mmap.mmap | bytes):
    self._data = data
    if len(self._data) < _HEADER.size or self._data[:6] != b"\x7fELF\x02\x01":
      raise ValueError("not a 64-bit little-endian ELF file")
    header = _HEADER.unpack_from(self._data)
    table, entry_size, count, names = header[6], header[11], header[12], header[13]
    if not count or names >= count or entry_size < _SECTION.size or table + count * entry_size > len(self._data):
      raise ValueError("the table of sections is missing or lies outside of the file")
    entries = [_SECTION.unpack_from(self._data, table + index * entry_size) for index in range(count)]
    strings = entries[names][4]
    self.sections = []
    for entry in entries:
      size = 0 if entry[1] == _NO_BITS else entry[5]
      if entry[4] + size > len(self._data):
        raise ValueError(f"section {len(self.sections)} ends outside of the file")
      self.sections.append(Section(self._string(strings + entry[0]), entry[4], size))

  def _string(self, offset: int) -> str:
    end = offset
    while (part := self._data[end:end + 64]) and b"\0" not in part:
      end += 64
    return self._data[offset:end + 64].split(b"\0", 1)[0].decode("utf-8", "replace")


def is_elf(path: pathlib.Path) -> bool:
  """Whether a file begins as ELF files do."""
  with path.open("rb") as file:
    return file.read(4) == b"\x7fELF"
