# SPDX-License-Identifier: Apache-2.0
"""Builds small ELF files, and GPU code in them, for tests."""

from __future__ import annotations

import struct


def entry(code: str, content: bytes, kind: int | None = None) -> bytes:
  """Returns an entry of GPU code: "sm_90", or "compute_80", whose PTX has a longer header."""
  name, number = code.split("_")
  ptx = name == "compute"
  size = 80 if ptx else 64
  header = struct.pack("<HHIQIIIIQQQQ", kind or (1 if ptx else 2), 0x101, size, len(content), 0, 0, 0, int(number),
                       64, 0, 0, 0)
  return header.ljust(size, b"\0") + content


def container(*entries: bytes) -> bytes:
  """Returns a container of entries."""
  content = b"".join(entries)
  return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(content)) + content


def library(sections: dict[str, bytes]) -> bytes:
  """Returns an ELF file that has only these sections, after its header, each at a multiple of 16."""
  names = b"\0" + b"".join(name.encode() + b"\0" for name in [*sections, ".shstrtab"])
  body = bytearray(64)
  headers = [bytes(64)]
  for name, content in [*sections.items(), (".shstrtab", names)]:
    body += bytes(-len(body) % 16)
    headers.append(struct.pack("<IIQQQQIIQQ", names.index(b"\0" + name.encode() + b"\0") + 1, 1, 0, 0, len(body),
                               len(content), 0, 0, 8, 0))
    body += content
  table = len(body)
  header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 0, table, 0, 64, 0, 0, 64,
                       len(headers), len(headers) - 1)
  body[:64] = header
  return bytes(body) + b"".join(headers)
