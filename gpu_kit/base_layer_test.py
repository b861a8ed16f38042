# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess

import base_layer
import chips
import elf_files
import pytest

_REQUIRED = [
    "numpy (<2.0.0,>=1.23.5)",
    "nvidia-cublas-cu11 (==11.11.3.6) ; extra == 'and-cuda'",
    "nvidia-nccl-cu11 (==2.16.5) ; extra == 'and-cuda'",
]


def test_versions_of_the_extra():
  base_layer.check_versions(_REQUIRED, {"numpy": "1.26.4", "nvidia-cublas-cu11": "11.11.3.6"})


@pytest.mark.parametrize("name", ["nvidia-cublas-cu11", "nvidia-other"])
def test_other_versions_are_refused(name):
  with pytest.raises(ValueError, match=f"gpu_kit/requirements.txt has {name} 12.1, but the wheel requires"):
    base_layer.check_versions(_REQUIRED, {name: "12.1"})


def test_a_wheel_for_cpus_is_refused():
  with pytest.raises(ValueError, match="not a CUDA wheel: build it with ci/build_wheel.sh --config=cuda"):
    base_layer.check_versions(_REQUIRED[:1], {})


@pytest.fixture
def packages(tmp_path) -> pathlib.Path:
  """A folder of packages: a wheel that names a function of cuBLAS and one of cuDNN, and libraries of CUDA."""
  names = ("cublas/lib/libcublas.so.11", "cudnn/lib/libcudnn.so.8", "cudnn/lib/libcudnn_ops_infer.so.8",
           "cublas/lib/libnvblas.so.11")
  _compile(tmp_path / "tensorflow/wheel.so", 'const char* names[] = {"cublas_create", "cudnn_create"};')
  for name in names:
    library = name.rpartition("/lib")[2].partition(".")[0]
    # The shim loads the other library of cuDNN by name.
    other = 'const char* other = "libcudnn_ops_infer.so.8";' if library == "cudnn" else ""
    _compile(tmp_path / "nvidia" / name, f"int {library}_create(void) {{ return 0; }} {other}")
  return tmp_path


def _compile(path: pathlib.Path, code: str) -> None:
  path.parent.mkdir(parents=True, exist_ok=True)
  subprocess.run(["gcc", "-shared", "-fPIC", "-xc", "-", "-o", path], input=code, text=True, check=True, timeout=30)


def _left(packages: pathlib.Path) -> dict[str, bool]:
  """Returns whether each of CUDA's libraries that are left has functions."""
  return {path.name: b"_create" in path.read_bytes() for path in sorted(packages.glob("nvidia/*/lib/*"))}


def test_libraries_that_nothing_names_are_left_out(packages):
  assert base_layer._cuda(packages, set()) == []
  assert _left(packages) == {"libcublas.so.11": True, "libcudnn.so.8": True, "libcudnn_ops_infer.so.8": True}


def test_a_required_library_that_nothing_names_becomes_a_stand_in(packages):
  _compile(packages / "nvidia/cufft/lib/libcufft.so.10", "int cufft_create(void) { return 0; }")
  assert base_layer._cuda(packages, set()) == ["libcufft.so.10"]
  assert _left(packages)["libcufft.so.10"] is False


def test_a_stand_in_on_request_also_drops_what_only_it_loads(packages):
  assert base_layer._cuda(packages, {"cudnn"}) == ["libcudnn.so.8"]
  assert _left(packages) == {"libcublas.so.11": True, "libcudnn.so.8": False}


def test_a_stand_in_for_an_unknown_library_is_refused(packages):
  with pytest.raises(ValueError, match='no library "cudn" to stand in for: there are cublas, cudnn, nvblas'):
    base_layer._cuda(packages, {"cudn"})


def test_gpu_code_of_all_packages_is_kept_for_the_chip_only(tmp_path):
  code = elf_files.container(elf_files.entry("sm_80", b"a" * 8), elf_files.entry("compute_80", b"p" * 8))
  (tmp_path / "tensorflow").mkdir()
  library = tmp_path / "tensorflow/libtensorflow_cc.so.2"
  library.write_bytes(elf_files.library({".nv_fatbin": code}))
  (tmp_path / "tensorflow/none.so").write_bytes(elf_files.library({".text": b"code"}))
  assert base_layer._shrink(tmp_path, [chips.Chip(9, 0)]) == {"libtensorflow_cc.so.2": [["compute_80"]]}
  assert b"a" * 8 not in library.read_bytes()
  library.write_bytes(elf_files.library({".nv_fatbin": b"unknown"}))
  with pytest.raises(ValueError, match="libtensorflow_cc.so.2: unknown bytes"):
    base_layer._shrink(tmp_path, [chips.Chip(9, 0)])


@pytest.mark.parametrize(
    ("codes", "allowed"),
    [([["sm_90"], []], True), ([["sm_90"], ["compute_80"]], False), ([["compute_80", "sm_90"]], True)],
)
def test_a_wheel_without_machine_code_for_the_chip_is_refused(codes, allowed):
  code = {"libcufft.so.10": [["compute_80"]], "libtensorflow_cc_base.so.2": codes}
  if allowed:
    base_layer.check_native(code, [chips.Chip(9, 0)])
  else:
    with pytest.raises(ValueError, match="tensorflow_cc_base.so.2 has no machine code for sm_90: build .*--chip=sm_90"):
      base_layer.check_native(code, [chips.Chip(9, 0)])


def test_the_key_depends_on_the_options():
  assert base_layer.key(["sm_90"]) == base_layer.key(["sm_90"]) != base_layer.key(["sm_90", "cudnn"])
