# SPDX-License-Identifier: Apache-2.0
"""Tests of run.sh, with kits whose Python prints its arguments, and of run_kit.py, with a kit of small programs."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import pieces
import pytest

_FOLDER = pathlib.Path(__file__).parent
_TITLE = "# GPU kit 1: tensorflow 2.14.1, commit abc, for sm_90, glibc 2.2, 0.0 GB unpacked"
_FAKE_PYTHON = "#!/bin/sh\necho \"python $*\"\n"


@pytest.fixture
def kit(tmp_path) -> pathlib.Path:
  """A kit of start.tar.gz and three pieces."""
  python = tmp_path / "python3.11"
  python.write_text(_FAKE_PYTHON)
  python.chmod(0o755)
  folder = tmp_path / "the kit"
  folder.mkdir()
  with tarfile.open(folder / "start.tar.gz", "w:gz") as archive:
    archive.add(python, "python/bin/python3.11")
  for number in range(3):
    (folder / f"kit.tar.xz.{number:03}").write_bytes(bytes([number]) * 100)
  _write_manifest(folder, _TITLE)
  return folder


def _write_manifest(folder: pathlib.Path, title: str) -> None:
  paths = [folder / "start.tar.gz", *sorted(folder.glob("kit.*"))]
  lines = [title, *(f"{pieces.sha256(path)}  {path.name}" for path in paths)]
  (folder / "manifest.txt").write_text("\n".join(lines) + "\n")


def _run(*arguments: pathlib.Path | str, **environment: str) -> subprocess.CompletedProcess:
  return subprocess.run(
      [_FOLDER / "run.sh", *arguments], env=os.environ | environment, capture_output=True, text=True, timeout=60)


def _error(folder: pathlib.Path) -> str:
  done = _run(folder)
  assert done.returncode == 1
  assert "python -s" not in done.stdout
  return done.stderr


def test_a_whole_kit_is_unpacked_and_run(kit):
  done = _run(kit, kit / "r.md", GPU_KIT_SECONDS="500")
  assert done.returncode == 0, done.stderr
  assert "All 4 pieces are as they were packed." in done.stdout
  command = done.stdout.splitlines()[-1]
  assert command.startswith(f"python -s {kit}/unpacked/ci/gpu/run_kit.py --report={kit}/r.md --seconds=")
  assert command.endswith(" ".join(f"{kit}/kit.tar.xz.00{number}" for number in range(3)))
  assert 400 < int(command.partition("--seconds=")[2].split()[0]) <= 500


def test_missing_pieces_are_named(kit):
  (kit / "kit.tar.xz.001").unlink()
  (kit / "start.tar.gz").unlink()
  assert f"{kit} lacks 2 of 4 pieces; copy them there: start.tar.gz kit.tar.xz.001\n" in _error(kit)


def test_wrong_pieces_are_named(kit):
  (kit / "kit.tar.xz.000").write_bytes(b"cut")
  (kit / "kit.tar.xz.002").write_bytes(b"\3" * 100)
  message = "has 2 pieces that are not as they were packed; copy them again: kit.tar.xz.000 kit.tar.xz.002\n"
  assert message in _error(kit)


@pytest.mark.parametrize(
    ("title", "message"),
    [
        ("# GPU kit 2: other", "is not of this version of the kit: run the ci/gpu/run.sh of the commit that packed it"),
        (_TITLE.replace("glibc 2.2,", "glibc 99.9,"), "The kit needs glibc 99.9, and this machine has "),
        (_TITLE.replace("0.0 GB", "9000000.5 GB"), "The kit needs about 9000000.5 GB and half as much again"),
    ],
)
def test_a_machine_or_a_script_that_does_not_fit(kit, title, message):
  _write_manifest(kit, title)
  assert message in _error(kit)


def test_a_folder_without_a_kit(tmp_path):
  assert "has no manifest.txt: copy all files that ci/gpu/pack.sh wrote" in _error(tmp_path)


def test_a_manifest_that_is_cut_off(kit):
  (kit / "manifest.txt").write_text(_TITLE + "\n")
  assert "names no pieces: copy it again" in _error(kit)


@pytest.fixture
def unpacked(tmp_path) -> pathlib.Path:
  """What run.sh unpacks: the real scripts, a warm-up that can be told what to do, and a test."""
  folder = tmp_path / "unpacked"
  tests = folder / "ci" / "gpu" / "tests"
  tests.mkdir(parents=True)
  for path in _FOLDER.glob("*.py"):
    shutil.copy(path, folder / "ci" / "gpu")
  (folder / "ci/gpu/warm_up.py").write_text(
      "import os, sys\nprint('a warning', file=sys.stderr)\nprint('| warm | up |')\nexec(os.environ['WARM'])\n")
  (tests / "a_test.py").write_text(
      "import pytest\ndef test_measured(record_property): record_property('ms', 5)\n"
      "@pytest.mark.skip(reason='needs a GPU')\ndef test_skipped(): pass\n")
  (tests / "crash_test.py").write_text("import os\ndef test_crash(): os.abort()\n")
  (folder / "benchmarks").mkdir()
  (folder / "benchmarks/gpu_x.py").write_text("print('| x |')\n")
  about = {"tensorflow": "2.14.1", "commit": "abc", "chips": ["sm_90"], "stand_ins": [], "code": {},
           "packages": {"nvidia-cublas-cu11": "11.11.3.6"}}
  (folder / "kit.json").write_text(json.dumps(about))
  (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\npython_files = "*_test.py"\n')
  return folder


def _run_kit(folder: pathlib.Path, paths: list[pathlib.Path], warm: str, seconds: int) -> tuple[int, str]:
  report = folder.parent / "report.md"
  command = [sys.executable, folder / "ci/gpu/run_kit.py", f"--report={report}", f"--seconds={seconds}", *paths]
  done = subprocess.run(command, env=os.environ | {"WARM": warm}, timeout=60, stdout=subprocess.PIPE)
  return done.returncode, report.read_text()


def _pieces(folder: pathlib.Path) -> list[pathlib.Path]:
  return pieces.pack([("packages/x", _FOLDER / "pieces.py")], folder, "kit.tar.xz.", 1 << 20, 1 << 16)


@pytest.mark.skipif(pathlib.Path("/dev/nvidia0").exists(), reason="tests what happens without a GPU")
def test_without_a_gpu_all_that_needs_none_runs(unpacked, tmp_path):
  paths = _pieces(tmp_path)
  (tmp_path / "manifest.txt").write_text("these pieces")
  (unpacked / "unpacked.txt").write_text("other pieces")
  status, report = _run_kit(unpacked, paths, "", 60)
  assert status == 1
  assert report.startswith("# tensorflow 2.14.1 on a machine without a GPU\n\n**There is no NVIDIA driver: ")
  assert (unpacked / "packages/x").exists()
  for row in ("| unpacking | passed |", "| warm-up | passed |", "| ci/gpu/tests/a_test.py | passed |",
              "| benchmarks/gpu_x.py | not run: there is no GPU to use | 0.0 |", "| nvidia-cublas-cu11 | 11.11.3.6 |",
              "## Tests\n\n1 passed, 0 failed, 1 skipped.\n\n", "| CUDA's libraries | passed |",
              "| 0 of 0 | can be loaded |",
              "| ci/gpu/tests/crash_test.py | failed with status -6 |",
              "## ci/gpu/tests/crash_test.py: the last lines of its log",
              "| a_test::test_measured | passed | 0.0 | ms 5 |",
              "| a_test::test_skipped | skipped: needs a GPU | 0.0 |"):
    assert row in report
  assert "## warm-up\n\n| warm | up |" in report
  # The next run, which has little time, finds the same pieces unpacked.
  (unpacked / "packages/x").unlink()
  report = _run_kit(unpacked, paths, "import sys; sys.exit(3)", 17)[1]
  assert "| unpacking | passed: an earlier run has unpacked the same pieces | 0.0 |" in report
  assert not (unpacked / "packages/x").exists()


def test_a_step_that_exceeds_the_time_is_ended_and_reported(unpacked, tmp_path):
  (unpacked / "logs").mkdir()
  (unpacked / "logs/ci_gpu_tests_a_test.py.log").write_text("the log of an earlier run")
  # 10 seconds are reserved for the report, and 5 for ending a step.
  status, report = _run_kit(unpacked, _pieces(tmp_path), "import time; time.sleep(60)", 18)
  assert status == 1
  assert "| warm-up | ended after " in report
  assert "| ci/gpu/tests/a_test.py | not run: no time was left | 0.0 |" in report
  assert "the log of an earlier run" not in report
  assert "## warm-up\n\n| warm | up |\n\n## warm-up: the last lines of its log\n\n```\na warning\n```\n" in report


def test_a_failed_unpacking_is_reported(unpacked, tmp_path):
  (tmp_path / "kit.tar.xz.000").write_bytes(b"damaged")
  status, report = _run_kit(unpacked, [tmp_path / "kit.tar.xz.000"], "", 60)
  assert status == 1
  assert "| unpacking | failed with status 1 |" in report
  assert "the pieces are damaged, or not in their order" in report
  assert "| warm-up |" not in report
