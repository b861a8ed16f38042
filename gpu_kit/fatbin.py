# SPDX-License-Identifier: Apache-2.0
"""Reads the GPU code in native libraries.

A library holds *containers*, one for each compiled file. A container has the same code for several chips, as entries;
the driver loads one of them, by the entries' headers.

Most containers are in sections of their own. Others are constants in the data of a library that loads them by itself:
TensorFlow's generated kernels, and those of cuFFT and cuBLASLt. NVIDIA does not document the format. In the sections, a
layout that this module does not know is an error; among other data, it stays as it is.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterable
from collections.abc import Iterator
from typing import NamedTuple

import chips
import elf

# The sections that hold nothing but containers, and those in which containers can be constants.
_LINKABLE_SECTION = "__nv_relfatbin"
_CONTAINER_SECTIONS = (".nv_fatbin", _LINKABLE_SECTION)
_DATA_SECTIONS = (".rodata", ".data", ".data.rel.ro", ".lrodata", ".ldata", ".cask_resource")

_MAGIC = 0xBA55ED50
_CONTAINER = struct.Struct("<IHHQ")
_BEGIN = re.compile(re.escape(struct.pack("<IHH", _MAGIC, 1, _CONTAINER.size)))
# Kind, version, size of the header, size of the content; and the chip, further behind.
_ENTRY = struct.Struct("<HHIQ")
_CHIP_OFFSET = 28
_NOT_ZERO = re.compile(rb"[^\0]")
_PTX, _SASS = 1, 2


class Entry(NamedTuple):
  """An entry of a container.

  Attributes:
    code: The code that it holds.
    header: Where it begins, in bytes from the library's begin: with a header, which its content follows.
    offset: Where its content begins, in bytes from the library's begin.
    size: The content's size in bytes.
  """

  code: chips.Code
  header: int
  offset: int
  size: int


class Container(NamedTuple):
  """The code of one compiled file.

  Attributes:
    offset: Where its entries begin, in bytes from the library's begin.
    size: The bytes of its entries with their headers.
    entries: The entries.
    linkable: Whether it is an input of CUDA's linker. Nothing loads it.
  """

  offset: int
  size: int
  entries: tuple[Entry, ...]
  linkable: bool = False


def containers(data: mmap.mmap | bytes) -> Iterator[Container]:
  """Yields each container of a library.

  Args:
    data: The library.

  Raises:
    ValueError: If it is not an ELF file, or its sections of GPU code have an unknown layout.
  """
  for section in elf.Elf(data).sections:
    if section.name in _CONTAINER_SECTIONS:
      for container in _containers(data, section.offset, section.offset + section.size):
        yield container._replace(linkable=section.name == _LINKABLE_SECTION)
    elif section.name in _DATA_SECTIONS:
      yield from _constants(data, section.offset, section.offset + section.size)


def needed(codes: Iterable[chips.Code], target: Iterable[chips.Chip]) -> set[chips.Code]:
  """Returns the code of a container that the driver takes for at least one of the chips."""
  codes = list(codes)
  return {code for chip in target if (code := chips.best(codes, chip)) is not None}


def _containers(data: mmap.mmap | bytes, begin: int, end: int) -> Iterator[Container]:
  position = begin
  while (match := _NOT_ZERO.search(data, position, end)) is not None:
    # Containers begin at multiples of 8; gaps are filled with zeros.
    position = max(position, match.start() // 8 * 8)
    if end - position < _CONTAINER.size:
      raise ValueError(f"unknown bytes at {position:#x}, at the end of the GPU code")
    magic, version, header, size = _CONTAINER.unpack_from(data, position)
    if magic != _MAGIC or version != 1 or header < _CONTAINER.size or position + header + size > end:
      raise ValueError(f"no container of GPU code that this program knows, at {position:#x}")
    yield Container(position + header, size, tuple(_entries(data, position + header, position + header + size)))
    position = (position + header + size + 7) // 8 * 8


def _constants(data: mmap.mmap | bytes, begin: int, end: int) -> Iterator[Container]:
  position = begin
  while (match := _BEGIN.search(data, position, end)) is not None:
    position = match.start() + 1
    offset = match.start() + _CONTAINER.size
    size = _CONTAINER.unpack_from(data, match.start())[3] if end >= offset else 0
    try:
      entries = tuple(_entries(data, offset, min(offset + size, end)))
    except ValueError:
      continue
    if entries:
      yield Container(offset, size, entries)
      position = offset + size


def _entries(data: mmap.mmap | bytes, position: int, end: int) -> Iterator[Entry]:
  while position < end:
    if end - position < _CHIP_OFFSET + 4:
      raise ValueError(f"an entry of GPU code at {position:#x} is cut off")
    kind, _, header, size = _ENTRY.unpack_from(data, position)
    number, = struct.unpack_from("<I", data, position + _CHIP_OFFSET)
    if kind not in (_PTX, _SASS) or header < _CHIP_OFFSET + 4 or position + header + size > end:
      raise ValueError(f"no entry of GPU code that this program knows, at {position:#x}: kind {kind}, header {header}")
    yield Entry(chips.Code(kind == _PTX, chips.Chip(*divmod(number, 10))), position, position + header, size)
    position += header + size
