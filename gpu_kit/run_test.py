# SPDX-License-Identifier: Apache-2.0
"""Tests of run.sh, with kits of a Python that prints its arguments, and of run_kit.py, with small programs as parts."""

import json
import pathlib
import shutil
import subprocess
import sys
import tarfile

import archives
import kit_parts
import pytest

_FOLDER = pathlib.Path(__file__).parent
_TITLE = "# GPU kit 2: tensorflow 2.14.1, commit abc, for sm_90, glibc 2.2, 0.0 GB unpacked"
# Unpacking writes what a base would have.
_FAKE_PYTHON = """#!/bin/sh
echo "python $*"
case $* in
  *pieces.py*) mkdir -p "$(dirname "$0")/../../packages" && echo base >"$(dirname "$0")/../../packages/changed.py" &&
    touch "$(dirname "$0")/../../packages/old.py" ;;
esac
"""


@pytest.fixture
def kit(tmp_path) -> pathlib.Path:
  """A kit of Python, two pieces of packages, and a commit."""
  python = tmp_path / "python3.11"
  python.write_text(_FAKE_PYTHON)
  python.chmod(0o755)
  folder = tmp_path / "the kit"
  folder.mkdir()
  shutil.copy(_FOLDER / "run.sh", folder)
  with tarfile.open(folder / "python.tar.gz", "w:gz") as archive:
    archive.add(python, "python/bin/python3.11")
  archives.write(folder / "commit.tar.gz", {"packages/changed.py": b"new\n", "removed.txt": b"packages/old.py\n"})
  for number in range(2):
    (folder / f"packages.tar.zst.{number:03}").write_bytes(bytes([number]) * 100)
  _write_manifest(folder, _TITLE)
  return folder


def _write_manifest(folder: pathlib.Path, title: str) -> None:
  paths = [folder / "commit.tar.gz", folder / "python.tar.gz", *sorted(folder.glob("packages.*"))]
  lines = [title, *(f"{archives.sha256(path)}  {path.name}" for path in paths)]
  (folder / "manifest.txt").write_text("\n".join(lines) + "\n")


def _run(folder: pathlib.Path, *arguments: pathlib.Path | str) -> subprocess.CompletedProcess:
  # From a folder that has nothing to do with the repository.
  return subprocess.run([folder / "run.sh", *arguments], cwd="/", capture_output=True, text=True, timeout=60)


def _error(folder: pathlib.Path, *arguments: str) -> str:
  done = _run(folder, *arguments)
  assert done.returncode == 1
  assert "python -s" not in done.stdout
  return done.stderr


def test_a_whole_kit_is_unpacked_and_run(kit, tmp_path):
  done = _run(kit, "--only", "dlrm", "--only", "din", "--seconds", "500", "--report", tmp_path / "r.md")
  assert done.returncode == 0, done.stderr
  assert "All 4 pieces are as they were packed." in done.stdout
  unpacking, running = [line for line in done.stdout.splitlines() if line.startswith("python ")]
  assert unpacking == (f"python -s {kit}/unpacked/unpacker/pieces.py {kit}/packages.tar.zst.000"
                       f" {kit}/packages.tar.zst.001 {kit}/unpacked")
  assert running.startswith(f"python -s {kit}/unpacked/gpu_kit/run_kit.py --report={tmp_path}/r.md --seconds=")
  assert running.endswith(" --only dlrm --only din")
  assert 400 < int(running.partition("--seconds=")[2].split()[0]) <= 500
  # The files of the commit replace those of the base.
  packages = {path.name: path.read_text() for path in (kit / "unpacked/packages").iterdir()}
  assert packages == {"changed.py": "new\n"}


def test_the_next_run_unpacks_nothing_even_without_the_pieces(kit):
  assert _run(kit).returncode == 0
  (kit / "packages.tar.zst.000").unlink()
  done = _run(kit, "--only", "dlrm")
  assert done.returncode == 0, done.stderr
  assert "pieces.py" not in done.stdout
  _write_manifest(kit, _TITLE.replace("abc", "abd"))
  done = _run(kit)
  assert "pieces.py" in done.stdout


def test_missing_pieces_are_named(kit):
  (kit / "packages.tar.zst.001").unlink()
  (kit / "python.tar.gz").unlink()
  assert f"{kit} lacks 2 of 4 pieces; copy them there: python.tar.gz packages.tar.zst.001\n" in _error(kit)


def test_wrong_pieces_are_named(kit):
  (kit / "packages.tar.zst.000").write_bytes(b"cut")
  (kit / "packages.tar.zst.001").write_bytes(b"\3" * 100)
  names = "packages.tar.zst.000 packages.tar.zst.001"
  message = f"has 2 pieces that are not as they were packed; copy them again: {names}\n"
  assert message in _error(kit)


@pytest.mark.parametrize(
    ("title", "message"),
    [
        ("# GPU kit 1: other", "is not of this version of the kit: use the run.sh that was packed with it"),
        (_TITLE.replace("glibc 2.2,", "glibc 99.9,"), "The kit needs glibc 99.9, and this machine has "),
        (_TITLE.replace("0.0 GB", "9000000.5 GB"), "The kit needs about 9000000.5 GB and half as much again"),
    ],
)
def test_a_machine_or_a_script_that_does_not_fit(kit, title, message):
  _write_manifest(kit, title)
  assert message in _error(kit)


def test_a_folder_without_a_kit(kit):
  (kit / "manifest.txt").unlink()
  assert "has no manifest.txt: copy all files that gpu_kit/pack.sh wrote" in _error(kit)


def test_a_manifest_that_is_cut_off(kit):
  (kit / "manifest.txt").write_text(_TITLE + "\n")
  assert "names no pieces: copy it again" in _error(kit)


@pytest.mark.parametrize(
    ("arguments", "message"), [(["--only"], "--only needs a value: run.sh "), (["--no", "x"], "unknown option --no: ")])
def test_wrong_arguments(kit, arguments, message):
  assert message in _error(kit, *arguments)


# Parts that need no TensorFlow, in place of those of kit_parts.py.
_PARTS = """
PARTS = (
    Part("native", 2, ("native.py", _DEVICE)),
    Part("launch", 5, ("launch.py",), needs_gpu=True),
    _test("values", 30, "a"),
    _test("crash", 30, "crash"),
    Part("dlrm", 30, ("dlrm.py",), environment=(("MODE", "x"),)),
)
"""


@pytest.fixture
def unpacked(tmp_path) -> pathlib.Path:
  """What run.sh unpacks: the real scripts, and small programs as parts."""
  folder = tmp_path / "unpacked"
  tests = folder / "gpu_kit" / "tests"
  tests.mkdir(parents=True)
  for path in _FOLDER.glob("*.py"):
    shutil.copy(path, folder / "gpu_kit")
  text = (_FOLDER / "kit_parts.py").read_text()
  text = text[:text.index("# What answers")] + _PARTS + text[text.index("def chosen"):]
  (folder / "gpu_kit/kit_parts.py").write_text(text)
  (folder / "native.py").write_text(
      "import sys, time\nprint('a warning', file=sys.stderr)\nprint('| native |', sys.argv[1])\ntime.sleep(60)\n")
  (tests / "a_test.py").write_text(
      "import os, pytest\ndef test_measured(record_property): record_property('ms', os.environ['GPU_TESTS_DEVICE'])\n"
      "@pytest.mark.skip(reason='needs a GPU')\ndef test_skipped(): pass\n")
  (tests / "crash_test.py").write_text("import os\ndef test_crash(): os.abort()\n")
  (folder / "dlrm.py").write_text("import os\nprint('| dlrm |', os.environ['MODE'])\n")
  about = {"tensorflow": "2.14.1", "commit": "abc", "chips": ["sm_90"], "stand_ins": [], "code": {},
           "packages": {"nvidia-cublas-cu11": "11.11.3.6"}}
  (folder / "kit.json").write_text(json.dumps(about))
  (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\npython_files = "*_test.py"\n')
  return folder


def _run_kit(folder: pathlib.Path, *options: str, seconds: int = 60) -> tuple[int, str, str]:
  report = folder.parent / "report.md"
  command = [sys.executable, folder / "gpu_kit/run_kit.py", f"--report={report}", f"--seconds={seconds}", *options]
  done = subprocess.run(command, timeout=60, capture_output=True, text=True)
  return done.returncode, done.stdout + done.stderr, report.read_text() if report.exists() else ""


def test_a_rehearsal_runs_all_parts_and_keeps_what_they_printed(unpacked):
  (unpacked / "logs").mkdir()
  (unpacked / "logs/launch.log").write_text("the log of an earlier run")
  status, printed, report = _run_kit(unpacked, "--device", "cpu")
  assert status == 1
  for row in ("| native | ended after 2 s, its share of the time |", "| launch | not run: it needs a GPU | 0.0 |",
              "| values | passed |", "| crash | failed with status -6 |", "| dlrm | passed |",
              "## native\n\n| native | cpu\n", "## native: the last lines of its log\n\n```\na warning\n```\n",
              "## Tests\n\n1 passed, 0 failed, 1 skipped.\n\n", "| a_test::test_measured | passed | 0.0 | ms /cpu:0 |",
              "| a_test::test_skipped | skipped: needs a GPU | 0.0 |", "## crash: the last lines of its log",
              "## dlrm\n\n| dlrm | x\n", "| nvidia-cublas-cu11 | 11.11.3.6 |"):
    assert row in report
  assert "the log of an earlier run" not in report
  lines = (unpacked.parent / "report.md.log").read_text().splitlines()
  for line in ("## native, at most 2 s", "| native | cpu", "| dlrm | x"):
    assert line in lines
    assert line in printed.splitlines()


def test_one_part_can_be_repeated(unpacked):
  status, _, report = _run_kit(unpacked, "--device=cpu", "--only=dlrm")
  assert status == 0
  assert "| dlrm | passed |" in report
  assert "| native |" not in report


@pytest.mark.skipif(pathlib.Path("/dev/nvidia0").exists(), reason="tests what happens without a GPU")
def test_without_a_gpu_nothing_runs_unless_asked(unpacked):
  status, _, report = _run_kit(unpacked)
  assert status == 1
  assert report.startswith("# tensorflow 2.14.1 on a machine without a GPU\n\n**There is no NVIDIA driver: ")
  assert "| dlrm | not run: there is no GPU to use | 0.0 |" in report


def test_an_unknown_part_is_refused(unpacked):
  status, printed, _ = _run_kit(unpacked, "--only=dlmr")
  assert status == 1
  assert "error: there is no part dlmr: there are native, launch, values, crash, dlrm" in printed


def test_without_time_nothing_runs(unpacked):
  _, _, report = _run_kit(unpacked, "--device=cpu", "--only=dlrm", seconds=5)
  assert "| dlrm | not run: no time was left | 0.0 |" in report


def test_every_part_has_its_program_and_a_name_of_its_own():
  assert len({part.name for part in kit_parts.PARTS}) == len(kit_parts.PARTS)
  for part in kit_parts.PARTS:
    files = part.command if part.is_test else part.command[:1]
    for file in files:
      assert (_FOLDER.parent / file).is_file()
  assert kit_parts.chosen(["dlrm", "native"])[0].name == "native"
  assert kit_parts.chosen([]) == list(kit_parts.PARTS)
  dlrm, = kit_parts.chosen(["dlrm"])
  assert dlrm.arguments("gpu") == ["benchmarks/gpu_models.py", "--models", "dlrm", "--device", "gpu"]
  assert dlrm.arguments("cpu")[-2:] == ["cpu", "--quick"]
