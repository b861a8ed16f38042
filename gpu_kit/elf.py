# SPDX-License-Identifier: Apache-2.0
"""Reads what the kit needs to know of 64-bit little-endian ELF files: sections, dynamic symbols, versions."""

from __future__ import annotations

import mmap
import pathlib
import struct
from typing import NamedTuple

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC = struct.Struct("<QQ")

_NO_BITS = 8
_DT_NEEDED, _DT_SONAME = 1, 14


class Section(NamedTuple):
  """A section's place in the file, in bytes. A section without bytes in the file (.bss) has size 0."""

  name: str
  offset: int
  size: int
  link: int


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
      self.sections.append(Section(self._string(strings + entry[0]), entry[4], size, entry[6]))

  def section(self, name: str) -> Section | None:
    """Returns the first section of this name."""
    return next((section for section in self.sections if section.name == name), None)

  def symbols(self) -> tuple[set[str], set[str]]:
    """Returns the names of the dynamic symbols that the file defines, and of those that it needs from others."""
    defined, undefined = set(), set()
    section = self.section(".dynsym")
    if section is not None:
      strings = self.sections[section.link].offset
      for offset in range(section.offset + _SYMBOL.size, section.offset + section.size, _SYMBOL.size):
        name, _, _, index, _, _ = _SYMBOL.unpack_from(self._data, offset)
        (defined if index else undefined).add(self._string(strings + name))
    return defined, undefined

  def needed(self) -> list[str]:
    """Returns the file names of the libraries that the loader loads with this one."""
    return self._dynamic(_DT_NEEDED)

  def soname(self) -> str | None:
    """Returns the library's own name, if it has one."""
    return next(iter(self._dynamic(_DT_SONAME)), None)

  def required_versions(self) -> set[str]:
    """Returns the symbol versions that other libraries must have, as in "GLIBC_2.34"."""
    versions = set()
    section = self.section(".gnu.version_r")
    if section is None or not section.size:
      return versions
    strings = self.sections[section.link].offset
    library = section.offset
    while True:
      _, count, _, first, following = struct.unpack_from("<HHIII", self._data, library)
      version = library + first
      for _ in range(count):
        _, _, _, name, after = struct.unpack_from("<IHHII", self._data, version)
        versions.add(self._string(strings + name))
        version += after
      if not following:
        return versions
      library += following

  def _dynamic(self, tag: int) -> list[str]:
    section = self.section(".dynamic")
    if section is None:
      return []
    strings = self.sections[section.link].offset
    entries = _DYNAMIC.iter_unpack(self._data[section.offset:section.offset + section.size // 16 * 16])
    return [self._string(strings + value) for entry, value in entries if entry == tag]

  def _string(self, offset: int) -> str:
    end = offset
    while (part := self._data[end:end + 64]) and b"\0" not in part:
      end += 64
    return self._data[offset:end + 64].split(b"\0", 1)[0].decode("utf-8", "replace")


def is_elf(path: pathlib.Path) -> bool:
  """Whether a file begins as ELF files do."""
  with path.open("rb") as file:
    return file.read(4) == b"\x7fELF"


def zero_symbol_tables(path: pathlib.Path) -> None:
  """Zeroes the symbols and the debug information of an ELF file that only debuggers read. Changes the file."""
  with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
    for section in Elf(data).sections:
      if section.name in (".symtab", ".strtab") or section.name.startswith(".debug_"):
        data[section.offset:section.offset + section.size] = bytes(section.size)
