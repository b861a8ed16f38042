# SPDX-License-Identifier: Apache-2.0
"""Tests of kit_archive.py, with a small package in place of TensorFlow, of run.sh in a kit, and of pack.sh."""

import json
import pathlib
import subprocess

import chips
import elf_files
import kit_archive
import pytest

_HOPPER = chips.Chip(9, 0)
_CODE = elf_files.container(elf_files.entry("sm_80", b"a" * 8), elf_files.entry("sm_90", b"h" * 8))
_REQUIRES = "Requires-Dist: nvidia-cublas-cu11 (==11.11.3.6) ; extra == 'and-cuda'\n"
_NO_PACKAGES = ("tensorflow/include/a.h", "tensorflow/__pycache__/a.pyc", "nvidia/nccl/lib/libnccl_device.bc",
                "nvidia/cuda_nvrtc/lib/libnvrtc.alt.so.12", "nvidia/cuda_nvcc/nvvm/lib64/libnvvm.so")
_COMPILER = ("nvidia/cuda_nvcc/bin/ptxas", "nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc")


def _packages(folder: pathlib.Path, code: bytes = _CODE, plugin: bool = False) -> pathlib.Path:
  """Makes a folder of packages, with one library that has GPU code."""
  for name, version, more in (("tensorflow", "2.14.1", _REQUIRES), ("tensorflow-staging", "2.21.1", ""))[:1 + plugin]:
    about = folder / f"{name.replace('-', '_')}-{version}.dist-info/METADATA"
    about.parent.mkdir(parents=True)
    about.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}")
  for name in ("tensorflow/__init__.py", *_NO_PACKAGES, *_COMPILER):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).touch()
  build = folder / "tensorflow/python/platform/build_info.py"
  build.parent.mkdir(parents=True)
  build.write_text("build_info = collections.OrderedDict([('cuda_version', '11.8')])\n")
  (folder / "tensorflow/libtensorflow_cc.so.2").write_bytes(elf_files.library({".nv_fatbin": code}))
  return folder


@pytest.fixture(scope="module")
def kit(tmp_path_factory) -> pathlib.Path:
  """A kit, packed and unpacked."""
  folder = tmp_path_factory.mktemp("kit")
  kit_archive.pack(_packages(folder / "packages"), folder / "kit.tar.gz", [_HOPPER], [])
  subprocess.run(["tar", "xzf", folder / "kit.tar.gz", "--directory", folder], check=True, timeout=60)
  return folder / "gpu-kit"


def _files(folder: pathlib.Path) -> set[str]:
  """Returns the paths of all files in a folder."""
  return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_kit_has_the_packages_and_what_it_runs_of_the_repository(kit):
  assert _files(kit / "packages") == {
      "tensorflow-2.14.1.dist-info/METADATA", "tensorflow/__init__.py", "tensorflow/libtensorflow_cc.so.2",
      "tensorflow/python/platform/build_info.py"}
  for name in ("gpu_kit/run_kit.py", "benchmarks/gpu_models.py", "modelzoo/base/training.py", "conftest.py",
               "tensorflow_staging/python/testing/random_graphs.py"):
    assert (kit / name).is_file()
  about = json.loads((kit / "kit.json").read_text())
  assert (about["kind"], about["tensorflow"], about["cuda"], about["chips"]) == ("fork", "2.14.1", "11.8", ["sm_90"])
  assert about["code"] == {"libtensorflow_cc.so.2": [["sm_90"]]}
  library = (kit / "packages/tensorflow/libtensorflow_cc.so.2").read_bytes()
  assert b"h" * 8 in library
  assert b"a" * 8 not in library


def test_a_kit_of_the_plugin_has_what_xla_compiles_with(tmp_path, capsys):
  out = tmp_path / "kit.tar.gz"
  kit_archive.pack(_packages(tmp_path / "packages", plugin=True), out, [_HOPPER], [])
  assert "MB, which is 1 pieces of 60 MB; " in capsys.readouterr().out
  subprocess.run(["tar", "xzf", out, "--directory", tmp_path], check=True, timeout=60)
  kit = tmp_path / "gpu-kit"
  found = {name for name in _files(kit / "packages") if name.startswith("nvidia/")}
  assert found == set(_COMPILER)
  assert (kit / "plugin/tests/as_fork/sitecustomize.py").is_file()
  about = json.loads((kit / "kit.json").read_text())
  assert (about["kind"], about["wheel"]) == ("plugin", "tensorflow-staging 2.21.1")


def test_a_kit_runs_with_its_own_python_in_an_empty_environment(kit, tmp_path):
  report = tmp_path / "report.md"
  command = [kit / "run.sh", "--device", "cpu", "--only", "native", "--report", report]
  done = subprocess.run(command, cwd="/", env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=60)
  assert (done.returncode, done.stderr) == (1, "")  # There is no TensorFlow to train with.
  assert "| native | failed with status 1 |" in report.read_text()
  assert "import of TensorFlow" not in report.read_text()


def test_gpu_code_of_an_unknown_layout_is_refused(tmp_path):
  with pytest.raises(ValueError, match="libtensorflow_cc.so.2: unknown bytes"):
    kit_archive.pack(_packages(tmp_path / "packages", b"unknown"), tmp_path / "kit.tar.gz", [_HOPPER], [])


@pytest.mark.parametrize(
    ("codes", "allowed"),
    [([["sm_90"], []], True), ([["sm_90"], ["compute_80"]], False), ([["compute_80", "sm_90"]], True)],
)
def test_a_wheel_without_machine_code_for_the_chip_is_refused(codes, allowed):
  code = {"libcufft.so.10": [["compute_80"]], "libtensorflow_cc_base.so.2": codes}
  if allowed:
    kit_archive.check_native(code, [_HOPPER])
  else:
    with pytest.raises(ValueError, match="tensorflow_cc_base.so.2 has no machine code for sm_90: build .*--chip=sm_90"):
      kit_archive.check_native(code, [_HOPPER])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--chips", "sm_90"], "unknown option --chips"),
        (["--chip"], "--chip needs a value"),
        (["/missing.whl"], "There is no /missing.whl: build it with ci/build_wheel.sh --config=cuda --chip=sm_90"),
        (["--plugin", "/missing.whl"], "There is no /missing.whl: build it with ci/build_plugin.sh --tensorflow=2."),
    ],
)
def test_wrong_arguments(arguments, message):
  script = pathlib.Path(__file__).parents[1] / "pack.sh"
  done = subprocess.run([script, *arguments], capture_output=True, text=True, timeout=30)
  assert done.returncode == 1
  assert message in done.stderr
