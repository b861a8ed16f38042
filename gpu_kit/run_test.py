# SPDX-License-Identifier: Apache-2.0
"""Tests of run_kit.py, with small programs as parts."""

import json
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import about
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
    Part("ahead", 30, ("ahead.py", _PACKAGES), kinds=_BOTH, calls_staging=True),
    Part("keras3", 30, ("ahead.py", _PACKAGES), kinds=(PLUGIN,), environment=(("TF_USE_LEGACY_KERAS", "0"),),
         calls_staging=True),
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
  (folder / "ahead.py").write_text(
      "import os, sys\nprint('| of', sys.argv[1], 'with', os.environ.get('TF_USE_LEGACY_KERAS'), '|',"
      " os.environ['PYTHONPATH'])\n")
  _describe(folder, "fork")
  (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\npython_files = "*_test.py"\n')
  return folder


def _describe(folder: pathlib.Path, kind: str) -> None:
  """Writes the kit's description."""
  (folder / "kit.json").write_text(json.dumps({
      "kind": kind, "wheel": "tensorflow 2.14.1", "tensorflow": "2.14.1", "cuda": "11.8", "commit": "abc",
      "packages": {"nvidia-cublas-cu11": "11.11.3.6"}, "chips": ["sm_90"], "stand_ins": [], "code": {}}))


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
              "## dlrm\n\n| dlrm | x\n", "| nvidia-cublas-cu11 | 11.11.3.6 |", "| kit of the fork |",
              f"| of {unpacked}/packages with None | {unpacked}/packages\n"):
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


def test_a_kit_of_the_plugin_has_its_own_parts_and_gives_them_tf_staging(unpacked):
  _describe(unpacked, "plugin")
  status, _, report = _run_kit(unpacked, "--device=cpu")
  assert status == 0
  assert "| native |" not in report
  folders = f"{unpacked}/packages:{unpacked}/plugin/tests/as_fork"
  assert f"## ahead\n\n| of {unpacked}/packages with 1 | {folders}\n" in report
  assert f"## keras3\n\n| of {unpacked}/packages with 0 | {folders}\n" in report


def test_in_the_repository_the_packages_are_those_of_the_python(unpacked):
  (unpacked / "kit.json").unlink()
  for arguments in (["init"], ["-c", "user.name=x", "-c", "user.email=x", "commit", "--allow-empty", "--message=x"]):
    subprocess.run(["git", *arguments, "--quiet"], cwd=unpacked, check=True, timeout=30)
  status, printed, report = _run_kit(unpacked, "--device=cpu", "--only=ahead")
  assert status == 0, printed
  packages = pathlib.Path(sysconfig.get_path("platlib"))
  assert f"\n| of {packages} with" in report
  assert about.packages(packages)["wheel"] in report
  assert (unpacked / "dist/gpu_kit/logs/ahead.log").exists()


def _packages(folder: pathlib.Path, build: str, **versions: str) -> dict:
  for name, version in versions.items():
    file = folder / f"{name}-{version}.dist-info/METADATA"
    file.parent.mkdir(parents=True)
    file.write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n")
  file = folder / "tensorflow/python/platform/build_info.py"
  file.parent.mkdir(parents=True)
  file.write_text(f"build_info = collections.OrderedDict([{build}])\n")
  return about.packages(folder)


@pytest.mark.parametrize(
    ("versions", "build", "kind", "wheel", "cuda"),
    [
        ({"tensorflow": "2.14.1"}, "('cuda_version', '11.8'), ('x', 1)", "fork", "tensorflow 2.14.1", "11.8"),
        ({"tensorflow": "2.21.0", "tensorflow_staging": "2.21.1"}, "('x', 1), ('cuda_version', '12.5.1')", "plugin",
         "tensorflow-staging 2.21.1", "12.5"),
        ({"tensorflow": "2.14.1"}, "('is_cuda_build', False)", "fork", "tensorflow 2.14.1", None),
    ],
)
def test_packages_say_of_what_a_kit_is(tmp_path, versions, build, kind, wheel, cuda):
  found = _packages(tmp_path, build, **versions)
  assert (found["kind"], found["wheel"], found["cuda"]) == (kind, wheel, cuda)
  assert found["packages"] == {name.replace("_", "-"): version for name, version in versions.items()}


def test_an_unknown_part_is_refused(unpacked):
  status, printed, _ = _run_kit(unpacked, "--only=dlmr", "--only=keras3")
  assert status == 1
  assert ("error: there is no part dlmr, keras3 in a kit of the fork: there are native, values, crash, dlrm, ahead"
          in printed)


def test_without_time_nothing_runs(unpacked):
  _, _, report = _run_kit(unpacked, "--device=cpu", "--only=dlrm", seconds=5)
  assert "| dlrm | not run: no time was left | 0.0 |" in report


def test_every_part_has_its_program_and_a_name_of_its_own():
  assert len({part.name for part in kit_parts.PARTS}) == len(kit_parts.PARTS)
  for part in kit_parts.PARTS:
    files = part.command if part.is_test else part.command[:1]
    for file in files:
      assert (_FOLDER.parent / file).is_file()
  assert kit_parts.chosen("fork", ["dlrm", "native"])[0].name == "native"
  assert set(kit_parts.chosen("fork", [])) | set(kit_parts.chosen("plugin", [])) == set(kit_parts.PARTS)
  dlrm, = kit_parts.chosen("fork", ["dlrm"])
  assert dlrm.arguments("gpu", "/p") == ["benchmarks/gpu_models.py", "--models", "dlrm", "--device", "gpu"]
  assert dlrm.arguments("cpu", "/p")[-2:] == ["cpu", "--quick"]
  libraries, = kit_parts.chosen("plugin", ["libraries"])
  assert libraries.arguments("gpu", "/p") == ["gpu_kit/load_libraries.py", "/p/nvidia"]
