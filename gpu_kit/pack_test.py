# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import pathlib
import subprocess
import tarfile
import zipfile

import archives
import pack
import pytest

_METADATA, _RECORD = "t-1.dist-info/METADATA", "t-1.dist-info/RECORD"


@pytest.fixture
def base(tmp_path) -> pathlib.Path:
  """The base of a kit, with a wheel of three files."""
  folder = tmp_path / "base"
  folder.mkdir()
  pieces = ["python.tar.gz", "packages.tar.zst.000"]
  for name in pieces:
    (folder / name).write_text(name)
  about = {
      "wheel": {"a/same.py": "1", "a/old.py": "2", "a/changed.py": "3", "tensorflow/include/a.h": "4", _RECORD: ""},
      "pieces": pieces,
      "bytes": 1000,
      "chips": ["sm_90"],
      "glibc": "2.34",
      "code": {},
      "packages": {},
      "stand_ins": [],
  }
  (folder / "base.json").write_text(json.dumps(about))
  return folder


def _wheel(folder: pathlib.Path) -> pathlib.Path:
  path = folder / "t.whl"
  with zipfile.ZipFile(path, "w") as wheel:
    members = {"a/same.py": "", "a/changed.py": "new", "a/added.py": "", _METADATA: "Version: 2.1\n"}
    for name, text in members.items():
      wheel.writestr(name, text)
    wheel.writestr(_RECORD, "a/same.py,1,0\na/changed.py,5,3\na/added.py,6,0\n"
                   f"tensorflow/include/b.h,7,0\n{_METADATA},8,0\n{_RECORD},,\n")
  return path


def _pack(base: pathlib.Path, folder: pathlib.Path) -> int:
  return pack._pack(argparse.Namespace(base=base, wheel=_wheel(folder), kit=folder / "kit"))


def test_a_kit_has_the_base_and_what_differs_from_it(base, tmp_path):
  assert _pack(base, tmp_path) == 0
  kit = tmp_path / "kit"
  names = ["commit.tar.gz", "python.tar.gz", "packages.tar.zst.000"]
  assert sorted(path.name for path in kit.iterdir()) == sorted([*names, "manifest.txt", "run.sh"])
  title, *lines = (kit / "manifest.txt").read_text().splitlines()
  assert title.startswith("# GPU kit 2: tensorflow 2.1, commit ")
  assert title.endswith(", for sm_90, glibc 2.34, 0.0 GB unpacked")
  assert lines == [f"{archives.sha256(kit / name)}  {name}" for name in names]
  with tarfile.open(kit / "commit.tar.gz") as archive:
    read = lambda name: archive.extractfile(name).read().decode()
    packages = {name for name in archive.getnames() if name.startswith("packages/")}
    assert packages == {f"packages/{name}" for name in ("a/changed.py", "a/added.py", _METADATA, _RECORD)}
    assert read("packages/a/changed.py") == "new"
    assert read("removed.txt") == "packages/a/old.py\n"
    assert json.loads(read("kit.json"))["tensorflow"] == "2.1"
    assert archive.getmember("bin/launch").mode & 0o100
    # What run.sh and the parts need.
    for name in ("gpu_kit/run_kit.py", "benchmarks/gpu_models.py", "modelzoo/base/training.py", "conftest.py",
                 "tensorflow_staging/python/testing/random_graphs.py"):
      assert name in archive.getnames()


def test_a_wheel_that_differs_much_needs_a_new_base(base, tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(pack, "_MOST_BYTES", 2)
  assert _pack(base, tmp_path) == 3
  assert "of the wheel are not as in the base" in capsys.readouterr().out


def test_a_file_that_is_no_wheel_is_refused(tmp_path):
  with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
    archive.writestr("a", "")
  with pytest.raises(ValueError, match="a.whl is not a wheel: it has no RECORD"):
    archives.record_of(tmp_path / "a.whl")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--chips", "sm_90"], "unknown option --chips"),
        (["--chip"], "--chip needs a value"),
        (["/missing.whl"], "There is no /missing.whl: build it with ci/build_wheel.sh --config=cuda --chip=sm_90"),
    ],
)
def test_wrong_arguments(arguments, message):
  script = pathlib.Path(__file__).with_name("pack.sh")
  done = subprocess.run([script, *arguments], capture_output=True, text=True, timeout=30)
  assert done.returncode == 1
  assert message in done.stderr
