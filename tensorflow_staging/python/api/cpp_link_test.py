# SPDX-License-Identifier: Apache-2.0
"""A C++ program that links the wheel's `-ltensorflow_cc` gets the fork, even if its linker drops libraries."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
  """The program's object file."""
  folder = tmp_path_factory.mktemp("compiled")
  source = test_util.TESTDATA / "session_program.cc"
  test_util.run(
      ["g++", "-O1", "-DNDEBUG", *tf.sysconfig.get_compile_flags(), "-c", source, "-o", "session_program.o"], folder)
  return folder / "session_program.o"


@pytest.mark.parametrize("linker_flag", ["--as-needed", "--no-as-needed"])
def test_a_program_gets_the_session_of_the_fork(compiled, tmp_path, linker_flag):
  library_folder = tf.sysconfig.get_lib()
  test_util.run(
      ["g++", compiled, "-o", "session_program", f"-Wl,{linker_flag}", f"-L{library_folder}", "-ltensorflow_cc",
       f"-Wl,-rpath,{library_folder}"], tmp_path)
  output = test_util.run(["./session_program"], tmp_path)
  assert output.splitlines() == ["session: libtensorflow_cc_staging.so.2", "records: 0", "status: OK"]
