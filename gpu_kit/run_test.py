# SPDX-License-Identifier: Apache-2.0
"""Tests of run_kit.py, with small programs as parts."""

import json
import pathlib
import shutil
import subprocess
import sys

import kit_parts
import pytest

_FOLDER = pathlib.Path(__file__).parent

# Parts that need no TensorFlow, in place of those of kit_parts.py.
_PARTS = """
PARTS = (
    Part("native", 2, ("native.py", _DEVICE)),
    _test("values", 30, "a"),
    _test("crash", 30, "crash"),
    Part("dlrm", 30, ("dlrm.py",), environment=(("MODE", "x"),)),
)
"""


@pytest.fixture
def unpacked(tmp_path) -> pathlib.Path:
  """An unpacked kit: the real scripts, and small programs as parts."""
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
  (unpacked / "logs/dlrm.log").write_text("the log of an earlier run")
  status, printed, report = _run_kit(unpacked, "--device", "cpu")
  assert status == 1
  for row in ("| native | ended after 2 s, its share of the time |", "| values | passed |",
              "| crash | failed with status -6 |", "| dlrm | passed |",
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
  assert "error: there is no part dlmr: there are native, values, crash, dlrm" in printed


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
