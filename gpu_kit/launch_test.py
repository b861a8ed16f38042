# SPDX-License-Identifier: Apache-2.0
"""launch.cc builds, its kernels compile, and it says what a driver lacks. Its numbers need a GPU."""

import importlib.util
import os
import pathlib
import re
import subprocess

import launch
import native_code
import pytest

_FOLDER = pathlib.Path(__file__).parent

# A driver that does nothing, in no time.
_FUNCTIONS = ("cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuModuleLoadData",
              "cuModuleGetFunction", "cuStreamCreate", "cuStreamSynchronize", "cuMemAlloc_v2", "cuMemFree_v2",
              "cuMemFreeHost", "cuMemcpyHtoDAsync_v2", "cuLaunchKernel")
_DRIVER = "#include <stdlib.h>\n" + "".join(f"int {name}(void) {{ return 0; }}\n" for name in _FUNCTIONS)
_MEMORY = "int cuMemHostAlloc(void** memory, size_t bytes) { return (*memory = malloc(bytes)) == NULL; }\n"


@pytest.fixture(scope="module")
def program():
  with launch.built() as path:
    yield path


def _run(program: pathlib.Path, folder: pathlib.Path, driver: str) -> subprocess.CompletedProcess:
  library = folder / "libcuda.so.1"
  command = ["gcc", "-shared", "-fPIC", "-xc", "-", "-o", library]
  subprocess.run(command, input=driver, text=True, check=True, timeout=60)
  environment = os.environ | {"LD_LIBRARY_PATH": str(folder)}
  return subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60)


def test_all_rows_are_printed(program, tmp_path):
  done = _run(program, tmp_path, _DRIVER + _MEMORY)
  assert done.returncode == 0, done.stderr
  rows = done.stdout.splitlines()
  assert rows[:2] == ["| measured without TensorFlow | result |", "|---|---|"]
  assert [row.split()[1] for row in rows if "threads that launch" in row] == ["1", "2", "4"]
  assert len(rows) == 2 + 3 + 3 + 1 + 8 + 1 + 6
  assert all(re.fullmatch(r"\| [^|]+ \| [^|]+ \|", row) for row in rows[2:])


@pytest.mark.parametrize(
    ("driver", "message"),
    [
        (_DRIVER, "error: the driver has no function cuMemHostAlloc\n"),
        (_DRIVER.replace("cuInit(void) { return 0; }", "cuInit(void) { return 100; }") + _MEMORY,
         "error: cuInit returned 100\n"),
    ],
)
def test_what_a_driver_lacks_is_said(program, tmp_path, driver, message):
  done = _run(program, tmp_path, driver)
  assert (done.returncode, done.stderr) == (1, message)


def test_the_kernels_compile(tmp_path):
  ptx = re.search(r'kKernels\[\] = R"\((.*?)\)"', (_FOLDER / "launch.cc").read_text(), re.DOTALL)[1]
  assert native_code.kernels_of_ptx(ptx.encode()) == {"spin"}
  folder, = importlib.util.find_spec("nvidia.cuda_nvcc").submodule_search_locations
  with native_code.Compiler(pathlib.Path(folder, "bin", "ptxas")) as compiler:
    for chip in ("sm_70", "sm_90"):
      assert compiler.start(ptx.encode(), native_code.chips.parse_chip(chip)).result()
