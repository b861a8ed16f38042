# SPDX-License-Identifier: Apache-2.0
import pathlib
import zipfile

import pytest
import zip_copy


def _source(tmp_path: pathlib.Path) -> pathlib.Path:
  path = tmp_path / "source.zip"
  with zipfile.ZipFile(path, "w") as source:
    source.writestr("deflated.txt", "again and again " * 1000, zipfile.ZIP_DEFLATED)
    source.writestr("stored.bin", bytes(range(256)), zipfile.ZIP_STORED)
  return path


def test_copied_and_added_members_read_back(tmp_path):
  out = tmp_path / "out.zip"
  with zipfile.ZipFile(_source(tmp_path)) as source, zip_copy.WheelArchive(out) as target:
    target.add("first.txt", b"before")
    target.copy(source, source.getinfo("deflated.txt"), "renamed.txt")
    target.copy(source, source.getinfo("stored.bin"), "stored.bin")
    target.add("last.txt", b"after")
  with zipfile.ZipFile(out) as result:
    assert result.testzip() is None
    assert result.namelist() == ["first.txt", "renamed.txt", "stored.bin", "last.txt"]
    assert result.read("renamed.txt") == b"again and again " * 1000
    assert result.read("stored.bin") == bytes(range(256))
    assert result.read("last.txt") == b"after"
    # The member is still compressed.
    assert result.getinfo("renamed.txt").compress_size < 1000


def test_same_inputs_give_the_same_bytes(tmp_path):
  source_path = _source(tmp_path)
  archives = []
  for name in ("a.zip", "b.zip"):
    with zipfile.ZipFile(source_path) as source, zip_copy.WheelArchive(tmp_path / name) as target:
      target.copy(source, source.getinfo("deflated.txt"), "x")
      target.add("y", b"y")
    archives.append((tmp_path / name).read_bytes())
  assert archives[0] == archives[1]


def test_file_keeps_its_executable_bit(tmp_path):
  script = tmp_path / "script"
  script.write_text("#!/bin/sh\n")
  script.chmod(0o755)
  with zip_copy.WheelArchive(tmp_path / "out.zip") as target:
    target.add("script", script)
    target.add("text", b"")
  with zipfile.ZipFile(tmp_path / "out.zip") as result:
    modes = {info.filename: (info.external_attr >> 16) & 0o777 for info in result.infolist()}
  assert modes == {"script": 0o755, "text": 0o644}


def test_streamed_member_is_refused(tmp_path):
  class Unseekable:
    """A target without `seek`, to which zipfile can only stream."""

    def __init__(self):
      self.data = b""

    def write(self, data):
      self.data += data
      return len(data)

    def flush(self):
      pass

  stream = Unseekable()
  with zipfile.ZipFile(stream, "w") as source:
    source.writestr("a", "a")
  path = tmp_path / "streamed.zip"
  path.write_bytes(stream.data)
  with (
      zipfile.ZipFile(path) as source,
      zip_copy.WheelArchive(tmp_path / "out.zip") as target,
      pytest.raises(ValueError, match="was streamed"),
  ):
    target.copy(source, source.getinfo("a"), "a")
