# SPDX-License-Identifier: Apache-2.0
"""Memory that runs out ahead of the step."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import stage_kinds
from tensorflow_staging.python.testing import test_util

_KINDS = pytest.mark.parametrize("smart_stage", stage_kinds.KINDS.values(), ids=stage_kinds.KINDS)
# More than any address space.
_TOO_MUCH = 1 << 50


def _first_of_large_tensor(sizes: list[int]) -> tf.Tensor:
  """Returns a tensor that yields 7, after it has filled tensors of these sizes."""
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(tf.constant(sizes, tf.int64)))
  size = iterator.get_next()
  return tf.fill([size], tf.constant(7, tf.int64))[0]


@_KINDS
def test_the_error_arrives_after_the_records_before_it(smart_stage):
  step, config = stage_kinds.stage(_first_of_large_tensor([1, 2, _TOO_MUCH, 3]), smart_stage, capacity=2)
  with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      assert [sess.run(step), sess.run(step)] == [7, 7]
      for _ in range(2):
        with pytest.raises(tf.errors.ResourceExhaustedError, match="OOM"):
          sess.run(step)


@_KINDS
def test_a_record_without_memory_can_be_skipped(smart_stage):
  step, config = stage_kinds.stage(
      _first_of_large_tensor([1, _TOO_MUCH, 3]), smart_stage, capacity=2,
      ignored_exception_types=[tf.errors.RESOURCE_EXHAUSTED])
  with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      assert test_util.drain(sess, step) == [7, 7]


def test_a_process_with_little_memory(tmp_path):
  output = test_util.run_program(
      """
      import pathlib
      import resource

      import tensorflow as tf

      def address_space():
        return int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

      # 64 MB each: the buffer admits many more than fit into the memory that is left.
      number = tf.data.make_one_shot_iterator(tf.data.Dataset.range(1000)).get_next()
      record = tf.staged({"number": number, "large": tf.fill([8 << 20], number)}, capacity=1000)
      with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
        taken = [sess.run(record["number"])]
        resource.setrlimit(resource.RLIMIT_AS, (address_space() + (1 << 30), resource.RLIM_INFINITY))
        try:
          while True:
            while tf.staging.stats(sess)[0].error is None and tf.staging.stats(sess)[0].put < 500:
              pass
            taken.append(sess.run(record["number"]))
        except tf.errors.ResourceExhaustedError:
          print(taken == list(range(len(taken))), 2 < len(taken) < 500)
        # The records have been released, so there is memory again.
        print(sess.run(tf.fill([8 << 20], 1))[0])
      """, tmp_path)
  assert output == "True True\n1\n"
