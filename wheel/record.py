# SPDX-License-Identifier: Apache-2.0
"""Reads and writes RECORD, the list of a wheel's files with their hashes (PEP 376, PEP 427)."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import pathlib
import zipfile

Entry = tuple[str, int]  # "sha256=…", size in bytes


def entry_of(content: bytes | pathlib.Path) -> Entry:
  """Returns the hash and size of a file or of bytes, as RECORD writes them."""
  if isinstance(content, pathlib.Path):
    content = content.read_bytes()
  return _text_of(hashlib.sha256(content).digest()), len(content)


def _text_of(digest: bytes) -> str:
  return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def entry_of_member(archive: zipfile.ZipFile, name: str) -> Entry:
  """Returns the hash and size of a member of a zip file, as RECORD writes them."""
  digest, size = hashlib.sha256(), 0
  with archive.open(name) as member:
    while block := member.read(1 << 24):
      digest.update(block)
      size += len(block)
  return _text_of(digest.digest()), size


def parse(text: str) -> dict[str, Entry]:
  """Reads a RECORD, without the entries that have no hash, such as its own."""
  rows = csv.reader(io.StringIO(text))
  return {row[0]: (row[1], int(row[2])) for row in rows if row and row[1]}


def render(entries: dict[str, Entry], own_name: str) -> str:
  """Writes a RECORD.

  Args:
    entries: The hash and size of each file.
    own_name: RECORD's own path, which is listed without a hash.
  """
  out = io.StringIO()
  writer = csv.writer(out, lineterminator="\n")
  for name, (digest, size) in sorted(entries.items()):
    writer.writerow([name, digest, size])
  writer.writerow([own_name, "", ""])
  return out.getvalue()
