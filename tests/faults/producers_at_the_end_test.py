# SPDX-License-Identifier: Apache-2.0
"""1 to 8 producers come to the end of the data together: each record arrives, then the end, at every later step."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import stage_kinds
from tensorflow_staging.python.testing import test_util


@stage_kinds.BOTH
@pytest.mark.parametrize("producers", range(1, 9))
def test_every_record_then_the_end(producers, smart_stage):
  count = tf.placeholder(tf.int64, [])
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(count))
  step, config = stage_kinds.stage(iterator.get_next(), smart_stage, capacity=2, num_threads=producers)
  with tf.Session(config=config) as sess:
    sess.run([tf.global_variables_initializer(), iterator.initializer], {count: 0})
    with tf.make_prefetch_hook().running(sess):
      # Fewer records than producers, as many, more, and none.
      for records in (0, 1, producers, 50):
        sess.run(iterator.initializer, {count: records})
        assert sorted(test_util.drain(sess, step)) == list(range(records))
        for _ in range(2):
          with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(step)
