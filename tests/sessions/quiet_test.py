# SPDX-License-Identifier: Apache-2.0
"""Where nothing is wrong, stages log neither a warning nor what sounds like a loss."""

import re
import sys

from tensorflow_staging.python.testing import test_util

_PROGRAM = """
import tensorflow as tf

iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(1000))
tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
tf.staging.save_iterators()
record = tf.staged(iterator.get_next() * 2, capacity=8)
step = tf.train.get_or_create_global_step().assign_add(1)
with tf.train.MonitoredTrainingSession(checkpoint_dir="checkpoints", hooks=[tf.make_prefetch_hook()]) as sess:
  print([int(sess.run([record, step])[0]) for _ in range(3)])
"""


def test_a_session_initialises_its_iterator_and_a_second_one_resumes(tmp_path):
  (tmp_path / "program.py").write_text(_PROGRAM)
  for numbers in ("[0, 2, 4]", "[6, 8, 10]"):
    done = test_util.completed([sys.executable, "program.py"], tmp_path, TF_CPP_MIN_LOG_LEVEL="0")
    assert done.stdout.strip() == numbers
    # Lines of C++ have a time, the first letter of their level, and their file.
    own = [line for line in done.stderr.splitlines() if re.search(r" [IWEF] tensorflow_staging/", line)]
    assert own == []
