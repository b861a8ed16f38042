# SPDX-License-Identifier: Apache-2.0
"""Writes small archives, and reads the list of a wheel's files."""

from __future__ import annotations

import csv
import hashlib
import io
import pathlib
import tarfile
import zipfile
from collections.abc import Mapping


def write(path: pathlib.Path, files: Mapping[str, pathlib.Path | bytes]) -> None:
  """Writes a .tar.gz file. Equal files give equal bytes: owners and times are not packed.

  Args:
    path: The file to write.
    files: What is in it: a file or bytes by its name, with "/" between its folders. Links are followed.
  """
  with tarfile.open(path, "w:gz", compresslevel=6, dereference=True) as archive:
    for name, file in sorted(files.items()):
      if isinstance(file, bytes):
        info = tarfile.TarInfo(name)
        info.size = len(file)
        info.mode = 0o644
        archive.addfile(info, io.BytesIO(file))
      else:
        archive.add(file, name, recursive=False, filter=_plain)


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
  info.uid = info.gid = info.mtime = 0
  info.uname = info.gname = ""
  return info


def record_of(wheel: pathlib.Path) -> dict[str, str]:
  """Returns the hash of each file of a wheel, as its RECORD has it; RECORD itself has none.

  Raises:
    ValueError: If it has no RECORD, so it is not a wheel.
  """
  with zipfile.ZipFile(wheel) as archive:
    records = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
    if len(records) != 1:
      raise ValueError(f"{wheel} is not a wheel: it has no RECORD")
    rows = csv.reader(io.StringIO(archive.read(records[0]).decode()))
    return {row[0]: row[1] for row in rows if row}


def sha256(path: pathlib.Path) -> str:
  """Returns a file's SHA-256 in hexadecimal digits."""
  with path.open("rb") as file:
    return hashlib.file_digest(file, "sha256").hexdigest()
