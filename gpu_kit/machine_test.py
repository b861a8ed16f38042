# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import subprocess
import sys

import chips
import machine
import pytest

_CODE = {"libcublas.so.11": [["sm_90"]], "libtensorflow_cc.so.2": [["compute_80"], ["compute_80"]]}
_MIXED = {"libcusparse.so.11": [["compute_80"], ["sm_80", "sm_90"]]}


def _machine(chip: str = "sm_90", **changed) -> machine.Machine:
  return machine.Machine(**{
      "driver": "libcuda.so.1", "cuda": 13000, "gpus": [machine.Gpu("NVIDIA H200", chip, 150 << 30)], **changed})


def test_a_machine_that_can_run_the_kit():
  assert machine.problem(_machine(), "11.8", _CODE) is None


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"driver": None}, ["no NVIDIA driver", "libcuda.so.1", "--gpus all"]),
        ({"cuda": 11070}, ["knows CUDA 11.7", "needs 11.8", "newer"]),
        ({"status": 100, "gpus": []}, ["finds no GPU", "/dev/nvidia0"]),
        ({"gpus": []}, ["finds no GPU", "CUDA_VISIBLE_DEVICES"]),
        ({"status": 803, "gpus": []}, ["cuInit returned 803", "nvidia-smi"]),
        ({"chip": "sm_80"}, ["NVIDIA H200", "sm_80", "libcublas.so.11 cannot run", "gpu_kit/pack.sh --chip sm_80"]),
    ],
)
def test_each_problem_says_what_to_do(changed, words):
  text = machine.problem(_machine(**changed), "11.8", _CODE)
  for word in words:
    assert word in text


def test_a_wheel_without_cuda_cannot_use_a_gpu():
  assert "without CUDA" in machine.problem(_machine(), None, {})


@pytest.mark.parametrize(
    ("code", "chip", "lacking"),
    [
        (_CODE, "sm_90", []),
        (_CODE, "sm_80", ["libcublas.so.11"]),
        (_CODE, "sm_75", ["libcublas.so.11", "libtensorflow_cc.so.2"]),
        (_CODE, "sm_100", ["libcublas.so.11"]),
        (_MIXED, "sm_86", []),
        (_MIXED, "sm_90", []),
        # One container has PTX, but the other has none.
        (_MIXED, "sm_100", ["libcusparse.so.11"]),
        ({}, "sm_90", []),
    ],
)
def test_every_container_of_every_library_needs_code_for_the_chip(code, chip, lacking):
  assert machine.without_code(code, chips.parse_chip(chip)) == lacking


def test_a_machine_is_the_same_after_writing_and_reading():
  assert machine.Machine.from_json(_machine(system="s", cores=2).to_json()) == _machine(system="s", cores=2)


def test_this_machine_is_described():
  found = machine.find()
  assert "kernel" in found.system
  assert found.processor
  assert found.cores >= 1
  assert found.memory > 1 << 20


_DRIVER = """
#include <string.h>
int cuInit(unsigned flags) { return STATUS; }
int cuDriverGetVersion(int* version) { *version = 13000; return 0; }
int cuDeviceGetCount(int* count) { *count = 2; return 0; }
int cuDeviceGet(int* device, int number) { *device = number + 10; return 0; }
int cuDeviceGetName(char* name, int size, int device) { strncpy(name, device == 10 ? "One" : "Two", size); return 0; }
int cuDeviceTotalMem_v2(size_t* bytes, int device) { *bytes = 5000000000 * device; return 0; }
int cuDeviceGetAttribute(int* value, int what, int device) { *value = what == 75 ? 9 : device - 10; return 0; }
"""


@pytest.mark.parametrize("status", [0, 100, 999])
def test_a_driver_is_asked(tmp_path, status):
  library = tmp_path / "libcuda.so.1"
  command = ["gcc", "-shared", "-fPIC", f"-DSTATUS={status}", "-xc", "-", "-o", library]
  subprocess.run(command, input=_DRIVER, text=True, check=True, timeout=30)
  done = subprocess.run(
      [sys.executable, pathlib.Path(machine.__file__)], env=os.environ | {"LD_LIBRARY_PATH": str(tmp_path)},
      capture_output=True, text=True, check=True, timeout=30)
  found = machine.Machine.from_json(done.stdout)
  assert (found.driver, found.cuda, found.status) == ("libcuda.so.1", 13000, status)
  gpus = [machine.Gpu("One", "sm_90", 50_000_000_000), machine.Gpu("Two", "sm_91", 55_000_000_000)]
  assert found.gpus == (gpus if status == 0 else [])
