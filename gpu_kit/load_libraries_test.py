# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess
import sys

import load_libraries
import pytest


def _build(path: pathlib.Path, code: str, *options: str | pathlib.Path) -> pathlib.Path:
  command = ["gcc", "-shared", "-fPIC", "-xc", "-", "-o", path, "-Wl,-z,now", f"-Wl,-soname,{path.name}",
             "-Wl,--no-as-needed", "-xnone", *options]
  subprocess.run(command, input=code, text=True, check=True, timeout=30)
  return path


def _load(folder: pathlib.Path) -> tuple[int, list[str]]:
  """Runs the program, and returns its status and the rows of its table."""
  program = pathlib.Path(load_libraries.__file__)
  done = subprocess.run([sys.executable, program, folder], capture_output=True, text=True, timeout=30)
  return done.returncode, done.stdout.splitlines()[2:]


def test_libraries_that_cannot_be_loaded_are_named(tmp_path):
  _build(tmp_path / "libgood.so.1", "int good(void) { return 0; }")
  _build(tmp_path / "libbad.so.1", "int missing(void); int bad(void) { return missing(); }")
  status, rows = _load(tmp_path)
  assert status == 1
  assert rows[0] == "| 1 of 2 | can be loaded |"
  assert rows[1].startswith("| libbad.so.1 | ")
  assert "missing" in rows[1]


@pytest.mark.skipif(pathlib.Path("/dev/nvidia0").exists(), reason="this machine may have the driver")
def test_what_lacks_only_the_driver_is_named_but_has_not_failed(tmp_path):
  driver = _build(tmp_path / "libcuda.so.1", "int driver(void) { return 0; }")
  _build(tmp_path / "libuser.so.1", "int user(void) { return 0; }", driver)
  driver.unlink()
  status, rows = _load(tmp_path)
  assert status == 0
  assert rows[0] == "| 0 of 1 | can be loaded |"
  assert rows[1].startswith("| libuser.so.1 | libcuda.so.1: ")
