# SPDX-License-Identifier: Apache-2.0
import zipfile

import record


def test_entry_is_the_unpadded_urlsafe_digest():
  digest, size = record.entry_of(b"")
  assert digest == "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
  assert size == 0


def test_bytes_and_file_agree(tmp_path):
  path = tmp_path / "f"
  path.write_bytes(b"content")
  assert record.entry_of(path) == record.entry_of(b"content")


def test_a_member_of_a_zip_file_agrees(tmp_path):
  with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
    archive.writestr("a/f", b"content")
    assert record.entry_of_member(archive, "a/f") == record.entry_of(b"content")


def test_render_and_parse_are_inverse():
  entries = {"b,with comma.py": ("sha256=x", 3), "a.py": ("sha256=y", 4)}
  text = record.render(entries, "t.dist-info/RECORD")
  assert text.splitlines()[0] == "a.py,sha256=y,4"
  assert text.splitlines()[-1] == "t.dist-info/RECORD,,"
  assert record.parse(text) == entries
