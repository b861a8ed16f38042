# SPDX-License-Identifier: Apache-2.0
"""Tests with small libraries, of elf.py and machine_libraries.py too."""

import ctypes
import pathlib
import subprocess
import sys

import cuda_libraries
import elf
import machine_libraries
import pytest


@pytest.fixture
def build(tmp_path):
  """A function that compiles C code to a library and returns its path."""

  def build(name: str, code: str, *options: str | pathlib.Path) -> pathlib.Path:
    path = tmp_path / name
    command = ["gcc", "-shared", "-fPIC", "-xc", "-", "-o", path, f"-Wl,-soname,{name}", "-Wl,--no-as-needed", "-xnone"]
    subprocess.run([*command, *options], input=code, text=True, check=True, timeout=30)
    return path

  return build


_LOADER = """
#include <dlfcn.h>
void* load(void* handle) { return dlsym(handle, "cublasCreate"); }
"""


def test_a_library_whose_function_is_looked_up_can_be_called(build):
  wheel = build("wheel.so", _LOADER)
  cublas = build("libcublas.so.11", "int cublasCreate(void) { return 0; } int cublasOther(void) { return 0; }")
  curand = build("libcurand.so.10", "int curandCreate(void) { return 0; }")
  named = cuda_libraries.names_in(wheel)
  assert {"cublasCreate", "dlsym", "libc.so.6"} <= named
  assert cuda_libraries.callable_libraries([cublas, curand], named) == {
      cublas: "the wheel names 1 of its functions, as cublasCreate"}


def test_a_library_that_another_one_needs_or_names_can_be_called(build):
  light = build("libcublasLt.so.11", "int hidden(void) { return 0; }")
  named_only = build("libops.so.8", "int ops(void) { return 0; }")
  cublas = build("libcublas.so.11", 'int cublasCreate(void) { return 0; } const char* name = "libops.so.8";', light)
  reasons = cuda_libraries.callable_libraries([light, named_only, cublas], {"cublasCreate"})
  assert reasons[light] == reasons[named_only] == "libcublas.so.11 names it"


def test_symbols_of_the_linker_do_not_count(build):
  library = build("libx.so", "int x(void) { return 0; }", "-Wl,--defsym=_edata=0,--export-dynamic-symbol=_edata")
  assert cuda_libraries.callable_libraries([library], {"_edata", "_init", "_fini", "_end"}) == {}


def test_a_stand_in_can_be_loaded_and_has_no_function(build):
  library = build("libcufft.so.10", "int cufftPlan1d(void) { return 0; }")
  cuda_libraries.write_stand_in(library)
  loaded = ctypes.CDLL(str(library))
  assert not hasattr(loaded, "cufftPlan1d")
  binary = elf.Elf(library.read_bytes())
  assert binary.soname() == "libcufft.so.10"
  assert binary.needed() == []


def test_libraries_that_tensorflow_only_loads():
  required = ["libcudart.so.11.0", "libcublas.so.11", "libcublasLt.so.11", "libcudnn.so.8"]
  others = ["libcudnn_ops_infer.so.8", "libcufftw.so.10", "libcusolverMg.so.11", "libcupti.so.11.8"]
  for name in required + others:
    assert cuda_libraries.is_required(pathlib.Path("lib") / name) == (name in required)


def test_a_library_works_without_its_symbol_table(build):
  library = build("libx.so", "static int secret(void) { return 41; } int x(void) { return secret() + 1; }", "-g", "-O0")
  assert b"secret" in library.read_bytes()
  elf.zero_symbol_tables(library)
  assert b"secret" not in library.read_bytes()
  assert ctypes.CDLL(str(library)).x() == 42


def test_libraries_that_a_program_needs_from_this_machine(build):
  own = build("libown.so.1", "int own(void) { return 0; }", "-lstdc++")
  user = build("user.so", "#include <stdlib.h>\nvoid* use(void) { return malloc(1); }", own)
  needs = machine_libraries.Needs([own, user])
  assert "libstdc++.so.6" in needs.libraries
  assert needs.libraries["libstdc++.so.6"].exists()
  assert not {"libown.so.1", "libc.so.6", "libm.so.6"} & needs.libraries.keys()
  assert needs.glibc >= (2, 2)
  with pytest.raises(ValueError, match="user.so needs libown.so.1, which is neither in the kit nor on this machine"):
    machine_libraries.Needs([user])


def test_libraries_that_cannot_be_loaded_are_named(build, tmp_path):
  build("libgood.so.1", "int good(void) { return 0; }")
  build("libbad.so.1", "int missing(void); int bad(void) { return missing(); }", "-Wl,-z,now")
  program = pathlib.Path(cuda_libraries.__file__)
  done = subprocess.run([sys.executable, program, tmp_path], capture_output=True, text=True, timeout=30)
  assert done.returncode == 1
  lines = done.stdout.splitlines()
  assert lines[2] == "| 1 of 2 | can be loaded |"
  assert lines[3].startswith("| libbad.so.1 | ")
  assert "missing" in lines[3]
