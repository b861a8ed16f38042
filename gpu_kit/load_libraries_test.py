# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess
import sys

import load_libraries


def test_libraries_that_cannot_be_loaded_are_named(tmp_path):
  for name, code in (("libgood.so.1", "int good(void) { return 0; }"),
                     ("libbad.so.1", "int missing(void); int bad(void) { return missing(); }")):
    command = ["gcc", "-shared", "-fPIC", "-xc", "-", "-o", tmp_path / name, "-Wl,-z,now"]
    subprocess.run(command, input=code, text=True, check=True, timeout=30)
  program = pathlib.Path(load_libraries.__file__)
  done = subprocess.run([sys.executable, program, tmp_path], capture_output=True, text=True, timeout=30)
  assert done.returncode == 1
  lines = done.stdout.splitlines()
  assert lines[2] == "| 1 of 2 | can be loaded |"
  assert lines[3].startswith("| libbad.so.1 | ")
  assert "missing" in lines[3]
