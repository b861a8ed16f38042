# SPDX-License-Identifier: Apache-2.0
"""Memory that runs out ahead of the step."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import stage_kinds
from tensorflow_staging.python.testing import test_util

# More than any address space.
_TOO_MUCH = 1 << 50


def _sizes_of_arrays(sizes: list[int]) -> tf.Tensor:
  """Returns a tensor that yields these sizes, each after Python has allocated as many bytes."""

  def allocate(size):
    return np.int64(np.zeros(size, np.int8).size)

  dataset = tf.data.Dataset.from_tensor_slices(tf.constant(sizes, tf.int64))
  dataset = dataset.map(lambda size: tf.ensure_shape(tf.numpy_function(allocate, [size], tf.int64), []))
  return tf.data.make_one_shot_iterator(dataset).get_next()


@stage_kinds.BOTH
def test_the_error_arrives_after_the_records_before_it(smart_stage):
  step, config = stage_kinds.stage(_sizes_of_arrays([1, 2, _TOO_MUCH]), smart_stage, capacity=2)
  with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      assert [sess.run(step), sess.run(step)] == [1, 2]
      with pytest.raises(tf.errors.ResourceExhaustedError, match="Unable to allocate 1.00 PiB"):
        sess.run(step)


@stage_kinds.BOTH
def test_a_record_without_memory_can_be_skipped(smart_stage):
  step, config = stage_kinds.stage(
      _sizes_of_arrays([1, _TOO_MUCH, 3]), smart_stage, capacity=2,
      ignored_exception_types=[tf.errors.RESOURCE_EXHAUSTED])
  with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      assert test_util.drain(sess, step) == [1, 3]


def test_a_process_with_little_memory(tmp_path):
  # Otherwise each thread reserves 64 MiB, and oneDNN's allocator keeps all memory for tensors.
  output = test_util.run_program(
      """
      import pathlib
      import resource
      import time

      import tensorflow as tf

      def address_space():
        return int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

      # 64 MiB each: the buffer admits many more than fit into the memory that is left.
      number = tf.data.make_one_shot_iterator(tf.data.Dataset.range(1000)).get_next()
      record = tf.staged({"number": number, "large": tf.fill([8 << 20], number)}, capacity=1000)
      with tf.Session() as sess:
        resource.setrlimit(resource.RLIMIT_AS, (address_space() + (1 << 30), resource.RLIM_INFINITY))
        with tf.make_prefetch_hook().running(sess):
          while tf.staging.stats(sess)[0].error is None:
            time.sleep(0.01)
          taken = []
          try:
            while True:
              taken.append(sess.run(record["number"]))
          except tf.errors.ResourceExhaustedError:
            print(taken == list(range(len(taken))), 2 < len(taken) < 17)
          # The records have been released, so there is memory again.
          print(sess.run(tf.fill([8 << 20], 1))[0])
      """, tmp_path, MALLOC_ARENA_MAX="1", TF_ENABLE_ONEDNN_OPTS="0")
  assert output == "True True\n1\n"


def test_stages_stop_although_no_thread_can_be_started():
  step, config = stage_kinds.stage(_sizes_of_arrays([1, 2, 3]), smart_stage=False)
  with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    hook = tf.make_prefetch_hook()
    hook.after_create_session(sess)
    assert sess.run(step) == 1
    previous = threading.stack_size(_TOO_MUCH)  # Of Python's threads.
    try:
      with pytest.raises(RuntimeError, match="can't start new thread"):
        threading.Thread(target=print).start()
      hook.end(sess)
    finally:
      threading.stack_size(previous)
    test_util.assert_no_stage_thread()
