# SPDX-License-Identifier: Apache-2.0
"""A graph that grows while its stages run."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python import smart_stage_testing


def test_new_nodes_leave_what_is_staged_as_it_is():
  record = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next()
  double = record * 2
  variable = tf.get_variable("variable", initializer=np.int64(1000))
  result = double + variable
  with smart_stage_testing.smart_stage_session(capacity=3) as sess:
    assert sess.run(result) == 1000
    assert sess.run([result, double + 1]) == [1002, 3]
    assert sess.run([result, tf.square(variable)]) == [1004, 1000000]
    # The sum would need what is staged to be carried, which it was not when the stage began.
    with pytest.raises(tf.errors.FailedPreconditionError, match="'IteratorGetNext:0'.*mark_target_node"):
      sess.run(record + variable)
    assert sess.run(result) == 1008  # The refused step had taken a record.


def test_a_stage_that_is_added_to_a_running_one_needs_a_name_of_its_own():
  double = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100)).get_next() * 2
  result = double + tf.get_variable("variable", initializer=np.int64(1000))
  with smart_stage_testing.smart_stage_session() as sess:
    assert sess.run(result) == 1000
    tf.staged(double)
    with pytest.raises(tf.errors.AlreadyExistsError, match="'prefetch/TensorBuffer.*SmartStageOptions"):
      sess.run(result)
