# SPDX-License-Identifier: Apache-2.0
"""A C++ program that links the wheel's `-ltensorflow_cc` gets the fork, even if its linker drops libraries."""

import shutil

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util


@pytest.mark.parametrize("linker_flag", ["--as-needed", "--no-as-needed"])
def test_a_program_gets_the_session_of_the_fork(tmp_path, linker_flag):
  shutil.copy(test_util.TESTDATA / "session_program.cc", tmp_path)
  library_folder = tf.sysconfig.get_lib()
  test_util.run(
      ["g++", "-O1", "-DNDEBUG", *tf.sysconfig.get_compile_flags(), "session_program.cc", "-o", "session_program",
       f"-Wl,{linker_flag}", f"-L{library_folder}", "-ltensorflow_cc", f"-Wl,-rpath,{library_folder}"], tmp_path)
  output = test_util.run(["./session_program"], tmp_path)
  assert output.splitlines() == ["session: libtensorflow_cc_staging.so.2", "records: 0", "status: OK"]
