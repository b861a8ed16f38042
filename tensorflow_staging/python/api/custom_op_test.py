# SPDX-License-Identifier: Apache-2.0
"""A user's own op builds with the flags from `tf.sysconfig`, loads and runs in a stage."""

import shutil

import numpy as np
import tensorflow as tf

from tensorflow_staging.python.testing import test_util


def test_a_custom_op_builds_loads_and_runs_in_a_stage(tmp_path):
  shutil.copy(test_util.TESTDATA / "row_sums_op.cc", tmp_path)
  test_util.run(
      ["g++", "-shared", "-fPIC", "-O1", "row_sums_op.cc", "-o", "row_sums_op.so",
       *tf.sysconfig.get_compile_flags(), *tf.sysconfig.get_link_flags()], tmp_path)
  library = tf.load_op_library(str(tmp_path / "row_sums_op.so"))

  sums = tf.staged(library.row_sums(tf.constant([[1.0, 2.0], [3.0, 4.0]])))
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    np.testing.assert_array_equal(sess.run(sums), [3.0, 7.0])
