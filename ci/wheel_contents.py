# SPDX-License-Identifier: Apache-2.0
"""What a wheel contains: its files, its metadata, and what its native libraries load."""

from __future__ import annotations

import email.parser
import pathlib
import re
import shutil
import subprocess
import tempfile
import zipfile
import zlib
from typing import NamedTuple

# The parts of a library's dynamic section that decide which libraries the loader finds, and where.
_LOADING = re.compile(r"\((NEEDED|SONAME|RPATH|RUNPATH|AUXILIARY|FILTER)\) .*\[(.*)\]")


class File(NamedTuple):
  """A file's size in bytes, and the CRC-32 of its content."""

  size: int
  crc: int


class Wheel:
  """A wheel, open for reading.

  Args:
    path: The wheel.

  Attributes:
    path: The wheel.
    files: The files by their paths in the wheel, without METADATA, WHEEL and RECORD. `*.dist-info` stands for the
      folder whose name has the wheel's name and version.
    headers: The headers of METADATA and WHEEL, as in "Requires-Dist: numpy", and the length and CRC-32 of the text
      below METADATA's headers.

  Raises:
    ValueError: If the file is not a wheel.
    OSError: If the file cannot be read.
  """

  def __init__(self, path: pathlib.Path):
    self.path = path
    try:
      self._zip = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
      raise ValueError(f"{path} is not a wheel: {error}") from None
    self._members = {_general(info.filename): info for info in self._zip.infolist() if not info.is_dir()}
    for name in ("METADATA", "WHEEL"):
      if f"*.dist-info/{name}" not in self._members:
        raise ValueError(f"{path} is not a wheel: its .dist-info folder has no {name}")
    self.files = {
        name: File(info.file_size, info.CRC)
        for name, info in self._members.items()
        if name not in ("*.dist-info/METADATA", "*.dist-info/WHEEL", "*.dist-info/RECORD")
    }
    self.headers = [*self._headers("METADATA"), *self._headers("WHEEL")]

  def __enter__(self) -> Wheel:
    return self

  def __exit__(self, *exception_info) -> None:
    self._zip.close()

  def loading(self, name: str) -> list[str] | None:
    """Returns what a native library tells the loader, as in ["NEEDED libm.so.6"], or None for any other file.

    Each folder of an RPATH or RUNPATH is one entry.

    Args:
      name: The file's path, as in `files`.

    Raises:
      CalledProcessError: If readelf cannot read the library.
    """
    with self._zip.open(self._members[name]) as source:
      magic = source.read(4)
      if magic != b"\x7fELF":
        return None
      with tempfile.NamedTemporaryFile() as extracted:
        extracted.write(magic)
        shutil.copyfileobj(source, extracted, 1 << 24)
        extracted.flush()
        printed = subprocess.run(
            ["readelf", "--wide", "--dynamic", extracted.name], check=True, capture_output=True, text=True
        ).stdout
    return [
        f"{tag} {part}"
        for tag, value in _LOADING.findall(printed)
        for part in (value.split(":") if tag.endswith("PATH") else [value])
    ]

  def _headers(self, name: str) -> list[str]:
    message = email.parser.Parser().parsestr(self._zip.read(self._members[f"*.dist-info/{name}"]).decode())
    headers = [f"{header}: {value}" for header, value in message.items()]
    text = message.get_payload().strip()
    if text:
      headers.append(f"Description: {len(text):,} characters, CRC-32 {zlib.crc32(text.encode()):08x}")
    return headers


def _general(name: str) -> str:
  """Returns a member's path without the wheel's name and version, which are in the names of two folders."""
  return re.sub(r"^[^/]+(\.dist-info|\.data)/", r"*\1/", name)
