# SPDX-License-Identifier: Apache-2.0
"""Each error code, as an error that ends the data, skips a record, or ends the stage."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import faulty_source
from tensorflow_staging.python.testing import stage_kinds
from tensorflow_staging.python.testing import test_util

_CODES = pytest.mark.parametrize("code", range(tf.errors.CANCELLED, tf.errors.UNAUTHENTICATED + 1))


def _source_and_step(smart_stage, **options):
  source = faulty_source.FaultySource()
  step, config = stage_kinds.stage(source.iterator.get_next(), smart_stage, capacity=4, **options)
  sess = tf.Session(config=config)
  sess.run([tf.global_variables_initializer(), source.iterator.initializer])
  return source, step, sess


@stage_kinds.BOTH
@_CODES
def test_a_closed_code_ends_the_data(code, smart_stage):
  source, step, sess = _source_and_step(smart_stage, closed_exception_types=[code])
  with sess, tf.make_prefetch_hook().running(sess):
    source.put(sess, 0, 1, 2)
    source.fail(sess, code)
    assert test_util.drain(sess, step) == [0, 1, 2]
    with pytest.raises(tf.errors.OutOfRangeError):
      sess.run(step)


@stage_kinds.BOTH
@_CODES
def test_an_ignored_code_skips_a_record(code, smart_stage):
  source, step, sess = _source_and_step(smart_stage, closed_exception_types=[], ignored_exception_types=[code])
  with sess, tf.make_prefetch_hook().running(sess):
    source.put(sess, 0, 1)
    source.fail(sess, code)
    assert [sess.run(step), sess.run(step)] == [0, 1]
    test_util.wait_until(lambda: tf.staging.stats(sess)[0].ignored > 0)
    source.resume(sess)
    if code == tf.errors.OUT_OF_RANGE:
      sess.run(source.iterator.initializer)  # For a dataset, this code is the end.
    source.put(sess, 2)
    assert sess.run(step) == 2


@stage_kinds.BOTH
@_CODES
def test_any_other_code_ends_the_stage_with_the_error(code, smart_stage):
  source, step, sess = _source_and_step(smart_stage, closed_exception_types=[])
  # TensorFlow's executor replaces UNAVAILABLE, so that it is not mistaken for a lost worker.
  raised = tf.errors.exception_type_from_error_code(tf.errors.INTERNAL if code == tf.errors.UNAVAILABLE else code)
  with sess, tf.make_prefetch_hook().running(sess):
    source.put(sess, 0, 1, 2)
    source.fail(sess, code)
    assert [sess.run(step) for _ in range(3)] == [0, 1, 2]
    for _ in range(2):
      # The text of the end of a dataset is that of the iterator.
      with pytest.raises(raised, match="End of sequence" if code == tf.errors.OUT_OF_RANGE else "the fault"):
        sess.run(step)
