# SPDX-License-Identifier: Apache-2.0
"""A dataset that yields what a test puts into it, and fails with any error that the test chooses."""

import tensorflow.compat.v1 as tf

from tensorflow_staging.python.stages import gen_tensor_buffer_ops

# Enough for every test, so that no call waits.
_CAPACITY = 100


class FaultySource:
  """Adds the dataset to the default graph.

  The source is a buffer that no runner feeds: the test puts the records and closes it with an error.
  """

  def __init__(self):
    self._attrs = {"shared_name": "faulty_source", "capacity": _CAPACITY}
    self._value = tf.placeholder(tf.int64, [])
    self._code = tf.placeholder(tf.int32, [])
    self._put = gen_tensor_buffer_ops.tensor_buffer_put([self._value], **self._attrs)
    self._close = gen_tensor_buffer_ops.tensor_buffer_close(self._code, "the fault", **self._attrs)
    self._resume = gen_tensor_buffer_ops.tensor_buffer_resume(**self._attrs)
    dataset = tf.data.Dataset.from_tensors(0).repeat().map(self._take)
    self.iterator = tf.data.make_initializable_iterator(dataset)

  def put(self, sess: tf.Session, *values: int) -> None:
    """Adds records."""
    for value in values:
      sess.run(self._put, {self._value: value})

  def fail(self, sess: tf.Session, code: int) -> None:
    """Makes the dataset fail with the error `code` after the records, until `resume`."""
    sess.run(self._close, {self._code: code})

  def resume(self, sess: tf.Session) -> None:
    """Ends the failure."""
    sess.run(self._resume)

  def _take(self, _) -> tf.Tensor:
    return gen_tensor_buffer_ops.tensor_buffer_take(dtypes=[tf.int64], shapes=[[]], **self._attrs)[0]
