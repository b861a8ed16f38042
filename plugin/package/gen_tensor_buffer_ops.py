# SPDX-License-Identifier: Apache-2.0
"""The Python functions of the buffer's ops, which TensorFlow's build generates in the fork. Only for graphs."""

from typing import Any

from tensorflow.python.framework import op_def_library
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib

from tensorflow_staging.python import vocabulary


def _add(op_type: str, name: str | None, **arguments: Any) -> ops.Operation:
  _, _, op, _ = op_def_library._apply_op_helper(op_type, name=name, container="", **arguments)
  return op


def tensor_buffer_put(values: Any, name: str | None = None, **attrs: Any) -> ops.Operation:
  return _add(vocabulary.PUT_OP, name, values=values, **attrs)


def tensor_buffer_take(name: str | None = None, **attrs: Any) -> list[tensor_lib.Tensor]:
  return list(_add(vocabulary.TAKE_OP, name, **attrs).outputs)


def tensor_buffer_cancel(name: str | None = None, **attrs: Any) -> ops.Operation:
  return _add(vocabulary.CANCEL_OP, name, **attrs)


def tensor_buffer_resume(name: str | None = None, **attrs: Any) -> ops.Operation:
  return _add(vocabulary.RESUME_OP, name, **attrs)


def tensor_buffer_close(
    error_code: tensor_lib.Tensor, error_message: tensor_lib.Tensor, name: str | None = None,
    **attrs: Any) -> ops.Operation:
  return _add(vocabulary.CLOSE_OP, name, error_code=error_code, error_message=error_message, **attrs)


def tensor_buffer_size(name: str | None = None, **attrs: Any) -> tensor_lib.Tensor:
  return _add(vocabulary.SIZE_OP, name, **attrs).outputs[0]


def tensor_buffer_stats(name: str | None = None, **attrs: Any) -> tensor_lib.Tensor:
  return _add(vocabulary.STATS_OP, name, **attrs).outputs[0]


def tensor_buffer_discard(name: str | None = None, **attrs: Any) -> tensor_lib.Tensor:
  return _add(vocabulary.DISCARD_OP, name, **attrs).outputs[0]
