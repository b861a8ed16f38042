# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess

import machine_libraries
import pytest


def _build(path: pathlib.Path, *options: str | pathlib.Path) -> pathlib.Path:
  command = ["gcc", "-shared", "-fPIC", "-xc", "-", "-o", path, f"-Wl,-soname,{path.name}", "-Wl,--no-as-needed",
             "-xnone", *options]
  subprocess.run(command, input="int own(void) { return 0; }", text=True, check=True, timeout=30)
  return path


def test_libraries_that_a_program_needs_from_this_machine(tmp_path):
  own = _build(tmp_path / "libown.so.1", "-lstdc++")
  user = _build(tmp_path / "user.so", own)
  needed = machine_libraries.needed_by([own, user])
  assert needed["libstdc++.so.6"].exists()
  assert not {"libown.so.1", "libc.so.6", "libm.so.6"} & needed.keys()
  with pytest.raises(ValueError, match="needs libown.so.1, which is neither in the kit nor on this machine"):
    machine_libraries.needed_by([user])
