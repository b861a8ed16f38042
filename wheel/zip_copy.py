# SPDX-License-Identifier: Apache-2.0
"""Writes a wheel most of whose members come unchanged from another wheel.

Copying the base wheel's members in compressed form takes a second; compressing them again would take a minute.
"""

from __future__ import annotations

import copy
import pathlib
import shutil
import struct
import zipfile

# All members have the same date, so that the same inputs give the same bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)

_LOCAL_HEADER = struct.Struct("<4s5H3L2H")


class WheelArchive:
  """A zip file to write, whose bytes depend only on its members.

  Args:
    path: The path of the zip file.
  """

  def __init__(self, path: pathlib.Path):
    self._zip = zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED)

  def __enter__(self) -> WheelArchive:
    return self

  def __exit__(self, *exception_info) -> None:
    self._zip.close()

  def copy(self, source: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> None:
    """Copies a member of another archive in compressed form.

    Args:
      source: The archive, opened from a file that can seek.
      member: The member to copy.
      name: The member's name in this archive.

    Raises:
      ValueError: If the member's sizes follow its data, as in a streamed zip.
    """
    if member.flag_bits & 0x08:
      raise ValueError(f"{source.filename}: {member.filename} was streamed; its sizes are not in its header")
    header = source.fp
    header.seek(member.header_offset)
    fields = _LOCAL_HEADER.unpack(header.read(_LOCAL_HEADER.size))
    header.seek(fields[-2] + fields[-1], 1)  # file name, extra field

    copied = copy.copy(member)
    copied.filename = copied.orig_filename = name
    copied.date_time = _EPOCH
    copied.extra = b""
    copied.header_offset = self._zip.start_dir
    target = self._zip.fp
    target.seek(self._zip.start_dir)
    target.write(copied.FileHeader())
    remaining = member.compress_size
    while remaining:
      block = header.read(min(remaining, 1 << 24))
      target.write(block)
      remaining -= len(block)
    # zipfile does the same after it has written a member, to list the member in the zip's directory.
    self._zip.filelist.append(copied)
    self._zip.NameToInfo[name] = copied
    self._zip.start_dir = target.tell()
    self._zip._didModify = True  # pylint: disable=protected-access

  def add(self, name: str, content: bytes | pathlib.Path) -> None:
    """Adds a new member, from memory or from a file.

    Args:
      name: The member's name in the archive.
      content: The bytes, or the file that has them. A file keeps its executable bit.
    """
    info = zipfile.ZipInfo(name, date_time=_EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    mode = 0o644
    if isinstance(content, pathlib.Path) and content.stat().st_mode & 0o100:
      mode = 0o755
    info.external_attr = (0o100000 | mode) << 16
    with self._zip.open(info, "w", force_zip64=False) as target:
      if isinstance(content, bytes):
        target.write(content)
      else:
        with content.open("rb") as source:
          shutil.copyfileobj(source, target)
