# SPDX-License-Identifier: Apache-2.0
"""Writing a wheel whose members are mostly another wheel's.

Nearly all of the base wheel goes into ours unchanged. Copying its members as
they are compressed takes a second; compressing them again takes a minute.
"""

from __future__ import annotations

import copy
import pathlib
import shutil
import struct
import zipfile

# Every member gets one date, so that the same inputs give the same bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)

_LOCAL_HEADER = struct.Struct("<4s5H3L2H")


class WheelArchive:
  """A zip file to be written, with deterministic members.

  Args:
    path: where to write it.
  """

  def __init__(self, path: pathlib.Path):
    self._zip = zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED)

  def __enter__(self) -> WheelArchive:
    return self

  def __exit__(self, *exception_info) -> None:
    self._zip.close()

  def copy(self, source: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> None:
    """Copies a member of another archive, still compressed.

    Args:
      source: the archive, open for reading from a real file.
      member: what to copy.
      name: its name here.

    Raises:
      ValueError: the member keeps its sizes behind its data (a streamed zip).
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
    # What zipfile itself does after a member: note it for the directory.
    self._zip.filelist.append(copied)
    self._zip.NameToInfo[name] = copied
    self._zip.start_dir = target.tell()
    self._zip._didModify = True  # pylint: disable=protected-access

  def add(self, name: str, content: bytes | pathlib.Path) -> None:
    """Adds a new member, from memory or from a file.

    Args:
      name: its name in the archive.
      content: its bytes, or the file that holds them; a file keeps its
        executable bit.
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
