# SPDX-License-Identifier: Apache-2.0
import io
import os
import pathlib
import random
import subprocess

import archives
import pieces
import pytest
import zstandard

_LIMIT = 300_000
_CHUNK = 100_000


@pytest.fixture
def packed(tmp_path) -> tuple[pathlib.Path, list[pathlib.Path]]:
  """Files with random bytes, zeros, a link and an empty file; and their pieces."""
  source = tmp_path / "source"
  (source / "a").mkdir(parents=True)
  (source / "a" / "random").write_bytes(random.Random(1).randbytes(1_000_000))
  (source / "a" / "program").write_bytes(bytes(500_000))
  (source / "a" / "program").chmod(0o755)
  (source / "empty").touch()
  (source / "link").symlink_to("a/program")
  return source, _pack(source, tmp_path / "pieces")


def _pack(source: pathlib.Path, folder: pathlib.Path) -> list[pathlib.Path]:
  folder.mkdir()
  files = [(str(path.relative_to(source)), path) for path in sorted(source.rglob("*")) if not path.is_dir()]
  return pieces.pack(files, folder, "kit.tar.zst.", _LIMIT, _CHUNK, level=1)


def _equal(one: pathlib.Path, two: pathlib.Path) -> bool:
  return subprocess.run(["diff", "--recursive", "--no-dereference", one, two], timeout=30).returncode == 0


def test_files_come_back_as_they_were(packed, tmp_path):
  source, paths = packed
  assert [path.name for path in paths] == [f"kit.tar.zst.{number:03}" for number in range(len(paths))]
  assert len(paths) > 3
  assert all(0 < path.stat().st_size <= _LIMIT for path in paths)
  target = tmp_path / "target"
  target.mkdir()
  pieces.unpack(paths, target, workers=2)
  assert _equal(source, target)
  assert os.access(target / "a" / "program", os.X_OK)


def test_the_pieces_are_one_tar_file(packed, tmp_path):
  source, paths = packed
  target = tmp_path / "target"
  target.mkdir()
  joined = io.BytesIO(b"".join(path.read_bytes() for path in paths))
  plain = zstandard.ZstdDecompressor().stream_reader(joined, read_across_frames=True).read()
  subprocess.run(["tar", "x", "--directory", target], input=plain, check=True, timeout=30)
  assert _equal(source, target)


def test_equal_files_give_equal_pieces(packed, tmp_path):
  source, paths = packed
  os.utime(source / "empty", (1, 1))
  again = _pack(source, tmp_path / "again")
  assert [archives.sha256(path) for path in again] == [archives.sha256(path) for path in paths]


@pytest.mark.parametrize("harm", ["missing", "swapped", "cut off", "wrong"])
def test_harmed_pieces_are_an_error(packed, tmp_path, harm):
  _, paths = packed
  if harm == "missing":
    del paths[1]
  elif harm == "swapped":
    paths[0], paths[1] = paths[1], paths[0]
  elif harm == "cut off":
    paths[1].write_bytes(paths[1].read_bytes()[:-5])
  else:
    data = bytearray(paths[1].read_bytes())
    data[len(data) // 2] ^= 1
    paths[1].write_bytes(data)
  with pytest.raises(ValueError, match="the pieces are damaged, or not in their order"):
    pieces.unpack(paths, tmp_path)


def test_chunks_must_fit_into_a_piece(tmp_path):
  with pytest.raises(ValueError, match="chunks of 100000 bytes can be larger than a piece of 100000 bytes"):
    pieces.pack([], tmp_path, "kit.", 100_000, 100_000)
