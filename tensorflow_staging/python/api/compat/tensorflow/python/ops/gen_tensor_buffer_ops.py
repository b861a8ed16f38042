# SPDX-License-Identifier: Apache-2.0
"""DeepRec's import path of the functions that add the ops of a buffer, with DeepRec's parameters.

`tf.staged` and `tf.prefetch_join` add these ops themselves. The functions are for programs that build a stage of their
own: its ops share one buffer if they have the same `container` and `shared_name` and run on the same device. Such a
stage has no runner, so `tf.make_prefetch_hook()` does not run it.
"""

from collections.abc import Sequence
from typing import Any
from typing import Optional
from typing import Union

from tensorflow.python.framework import constant_op
from tensorflow.python.framework import dtypes as dtypes_lib
from tensorflow.python.framework import errors
from tensorflow.python.framework import ops
from tensorflow.python.ops import math_ops

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.stages import argument_checks
from tensorflow_staging.python.stages import gen_tensor_buffer_ops

__all__ = [
    "tensor_buffer_cancel", "tensor_buffer_close", "tensor_buffer_put", "tensor_buffer_size", "tensor_buffer_take"
]


def tensor_buffer_put(
    record: Sequence[Any],
    container: str = "",
    shared_name: str = "",
    shared_capacity: int = 1,
    timeout_millis: int = 1000,
    name: Optional[str] = None,
) -> ops.Operation:
  """Adds an op that puts a record into a buffer.

  Args:
    record: The tensors of the record. It may have none.
    container: The resource container of the buffer.
    shared_name: The name of the buffer.
    shared_capacity: The number of records that the buffer holds, at least 1.
    timeout_millis: How many milliseconds to wait for room before the record is dropped, counted and
      logged. 0 sets no limit.
    name: The name of the op.

  Returns:
    The op. It fails with `tf.errors.CancelledError` while the buffer is cancelled or closed.

  Raises:
    TypeError: If `shared_capacity` or `timeout_millis` is not an integer.
    ValueError: If one of them is out of range.
  """
  argument_checks.check_int("timeout_millis", timeout_millis, minimum=0)
  return gen_tensor_buffer_ops.tensor_buffer_put(
      record, **_buffer(container, shared_name, shared_capacity), timeout_millis=timeout_millis, name=name)


def tensor_buffer_take(
    dtypes: Sequence[Any],
    container: str = "",
    shared_name: str = "",
    shared_capacity: int = 1,
    shared_threads: int = 1,
    name: Optional[str] = None,
) -> Union[list[ops.Tensor], ops.Operation]:
  """Adds an op that takes the oldest record of a buffer.

  Args:
    dtypes: The types of the record's tensors.
    container: As for `tensor_buffer_put`.
    shared_name: As for `tensor_buffer_put`.
    shared_capacity: As for `tensor_buffer_put`.
    shared_threads: An integer of at least 1. It has no effect: a take that waits holds no thread.
    name: The name of the op.

  Returns:
    The tensors of the record, of unknown static shapes, or the op itself if `dtypes` is empty. Without a
    record, the op fails with
    `tf.errors.OutOfRangeError` after `tensor_buffer_close`, and with `tf.errors.CancelledError`
    while the buffer is cancelled.

  Raises:
    TypeError: If `shared_capacity` or `shared_threads` is not an integer.
    ValueError: If one of them is out of range.
  """
  argument_checks.check_int("shared_threads", shared_threads, minimum=1)
  return gen_tensor_buffer_ops.tensor_buffer_take(
      dtypes, **_buffer(container, shared_name, shared_capacity), name=name)


def tensor_buffer_cancel(
    container: str = "",
    is_cancelled: bool = True,
    shared_name: str = "",
    shared_capacity: int = 1,
    name: Optional[str] = None,
) -> ops.Operation:
  """Adds an op that cancels a buffer, or opens it again. The buffer keeps its records.

  Args:
    container: As for `tensor_buffer_put`.
    is_cancelled: True cancels the buffer, False opens it, whether it is cancelled or closed.
    shared_name: As for `tensor_buffer_put`.
    shared_capacity: As for `tensor_buffer_put`.
    name: The name of the op.

  Returns:
    The op.

  Raises:
    TypeError: If `is_cancelled` is not a `bool`, or `shared_capacity` is not an integer.
    ValueError: If `shared_capacity` is out of range.
  """
  argument_checks.check_bool("is_cancelled", is_cancelled)
  add_op = gen_tensor_buffer_ops.tensor_buffer_cancel if is_cancelled else gen_tensor_buffer_ops.tensor_buffer_resume
  return add_op(**_buffer(container, shared_name, shared_capacity), name=name)


def tensor_buffer_close(
    container: str = "", shared_name: str = "", shared_capacity: int = 1, name: Optional[str] = None) -> ops.Operation:
  """Adds an op that declares the end of the data: no more records will come.

  Args:
    container: As for `tensor_buffer_put`.
    shared_name: As for `tensor_buffer_put`.
    shared_capacity: As for `tensor_buffer_put`.
    name: The name of the op.

  Returns:
    The op.

  Raises:
    TypeError: If `shared_capacity` is not an integer.
    ValueError: If it is out of range.
  """
  with ops.name_scope(name, "TensorBufferClose") as scope:
    # A string has no kernel on an accelerator.
    with ops.device("/cpu:0"):
      code = constant_op.constant(errors.OK, dtypes_lib.int32, name="error_code")
      message = constant_op.constant("", dtypes_lib.string, name="error_message")
    return gen_tensor_buffer_ops.tensor_buffer_close(
        code, message, **_buffer(container, shared_name, shared_capacity), name=scope)


def tensor_buffer_size(
    container: str = "", shared_name: str = "", shared_capacity: int = 1, name: Optional[str] = None) -> ops.Tensor:
  """Adds an op that counts the records of a buffer.

  Args:
    container: As for `tensor_buffer_put`.
    shared_name: As for `tensor_buffer_put`.
    shared_capacity: As for `tensor_buffer_put`.
    name: The name of the op.

  Returns:
    An int32 scalar.

  Raises:
    TypeError: If `shared_capacity` is not an integer.
    ValueError: If it is out of range.
  """
  size = gen_tensor_buffer_ops.tensor_buffer_size(**_buffer(container, shared_name, shared_capacity))
  return math_ops.cast(size, dtypes_lib.int32, name=name)


def _buffer(container: str, shared_name: str, shared_capacity: int) -> dict[str, Any]:
  """Checks the arguments that all these functions have, and returns the attributes of an op."""
  argument_checks.check_int("shared_capacity", shared_capacity, minimum=1)
  return {
      "container": container,
      vocabulary.SHARED_NAME_ATTR: shared_name,
      vocabulary.CAPACITY_ATTR: shared_capacity,
  }
