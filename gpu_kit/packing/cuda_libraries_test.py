# SPDX-License-Identifier: Apache-2.0
import ctypes
import pathlib
import subprocess

import cuda_libraries
import pytest

_REQUIRED = [
    "numpy (<2.0.0,>=1.23.5)",
    "nvidia-cublas-cu11 (==11.11.3.6) ; extra == 'and-cuda'",
    "nvidia-nccl-cu11 (==2.16.5) ; extra == 'and-cuda'",
]


# Newer wheels name ranges, and write markers in another way.
_RANGES = [
    "numpy>=1.26.0",
    'nvidia-cublas-cu12<13.0,>=12.5.3.2; extra == "and-cuda"',
    'tensorflow-io-gcs-filesystem>=0.23.1; (sys_platform != "win32" and python_version < "3.13")'
    ' and extra == "gcs-filesystem"',
]


def test_versions_of_the_extra():
  cuda_libraries.check_versions(_REQUIRED, {"numpy": "1.26.4", "nvidia-cublas-cu11": "11.11.3.6"})
  cuda_libraries.check_versions(_RANGES, {"numpy": "2.4.6", "nvidia-cublas-cu12": "12.9.3.13"})


@pytest.mark.parametrize(
    ("required", "name"),
    [(_REQUIRED, "nvidia-cublas-cu11"), (_REQUIRED, "nvidia-other"), (_RANGES, "nvidia-cublas-cu12"),
     (_RANGES, "nvidia-cublas-cu11")])
def test_other_versions_are_refused(required, name):
  with pytest.raises(ValueError, match=f"requirements have {name} 12.1, but the wheel requires"):
    cuda_libraries.check_versions(required, {name: "12.1"})


def test_a_wheel_for_cpus_is_refused():
  with pytest.raises(ValueError, match="not a CUDA wheel: build it with ci/build_wheel.sh --config=cuda"):
    cuda_libraries.check_versions(_REQUIRED[:1], {})


@pytest.fixture
def folder(tmp_path) -> pathlib.Path:
  """A folder of CUDA's libraries, each with a function."""
  for name in ("cublas/lib/libcublas.so.11", "cublas/lib/libnvblas.so.11", "cudnn/lib/libcudnn.so.8",
               "cudnn/lib/libcudnn_ops_infer.so.8"):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-shared", "-fPIC", "-xc", "-", "-o", path]
    subprocess.run(command, input="int create(void) { return 0; }", text=True, check=True, timeout=30)
  return tmp_path


def _left(folder: pathlib.Path) -> dict[str, bool]:
  """Returns whether each library that is left has its function."""
  return {path.name: hasattr(ctypes.CDLL(str(path)), "create") for path in folder.glob("*/lib/*")}


def test_what_nothing_can_call_is_left_out(folder):
  assert cuda_libraries.leave_out(folder, []) == []
  assert _left(folder) == {"libcublas.so.11": True, "libcudnn.so.8": True, "libcudnn_ops_infer.so.8": True}


def test_a_stand_in_can_be_loaded_and_drops_what_only_it_loads(folder):
  assert cuda_libraries.leave_out(folder, ["cudnn"]) == ["libcudnn.so.8"]
  assert _left(folder) == {"libcublas.so.11": True, "libcudnn.so.8": False}


def test_a_stand_in_for_an_unknown_library_is_refused(folder):
  with pytest.raises(ValueError, match="no library cudn to stand in for: there are cublas, cudnn, cudnn_ops_infer,"):
    cuda_libraries.leave_out(folder, ["cudn"])
