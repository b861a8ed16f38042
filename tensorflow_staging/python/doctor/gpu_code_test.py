# SPDX-License-Identifier: Apache-2.0
"""The doctor says whether a GPU finds machine code, and otherwise what that costs."""

import ctypes.util
import subprocess

import pytest

from tensorflow_staging.python.doctor import gpu_code

_H100 = gpu_code.Gpu("NVIDIA H100", (9, 0))
_OFFICIAL = ("sm_35", "sm_60", "sm_75")


@pytest.mark.parametrize(
    "chip, capability", [("sm_90", (9, 0)), ("sm_80", (8, 6)), ("sm_35", (3, 7)), ("sm_100", (10, 0))])
def test_machine_code_runs_on_its_generation(chip, capability):
  found, = gpu_code.check_gpu_code(["sm_60", chip], [gpu_code.Gpu("A GPU", capability)])
  assert not found.is_problem
  assert found.text == f"This wheel has machine code for A GPU, which is sm_{capability[0]}{capability[1]}."


def test_a_gpu_without_machine_code_gets_a_line_that_says_what_it_costs():
  found, = gpu_code.check_gpu_code(_OFFICIAL, [_H100, _H100])
  assert not found.is_problem
  line, = str(found).splitlines()
  assert "machine code for sm_35, sm_60, sm_75, and not for NVIDIA H100, which is sm_90: the driver compiles" in line
  assert "ci/build_wheel.sh --config=cuda --chip=sm_90" in line


def test_a_gpu_for_which_there_is_no_code_is_a_problem():
  found, = gpu_code.check_gpu_code(("sm_90",), [gpu_code.Gpu("Tesla T4", (7, 5))])
  assert found.is_problem
  assert found.advice.endswith("ci/build_wheel.sh --config=cuda --chip=sm_75")


def test_gpus_of_a_driver(tmp_path):
  """A driver that has two equal GPUs; there is none on the machines of the tests."""
  code = """
      int cuInit(unsigned flags) { return flags; }
      int cuDeviceGetCount(int* count) { *count = 2; return 0; }
      int cuDeviceGet(int* device, int number) { *device = number; return 0; }
      int cuDeviceGetName(char* name, int size, int device) { name[0] = 'H'; name[1] = 0; return size == device; }
      int cuDeviceGetAttribute(int* value, int attribute, int device) {
        *value = attribute == 75 ? 9 : attribute == 76 ? 0 : -1;
        return device < 0;
      }"""
  driver = tmp_path / "driver.so"
  subprocess.run(["gcc", "-shared", "-fPIC", "-xc", "-", "-o", driver], input=code, text=True, check=True, timeout=60)
  assert gpu_code.find(str(driver)) == [gpu_code.Gpu("H", (9, 0))] * 2


@pytest.mark.parametrize("driver", ["libnosuchdriver.so.1", ctypes.util.find_library("m")])
def test_without_a_driver_there_are_none(driver):
  assert gpu_code.find(driver) == []
  assert gpu_code.check_gpu_code(_OFFICIAL, []) == []
