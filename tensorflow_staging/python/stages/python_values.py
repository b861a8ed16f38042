# SPDX-License-Identifier: Apache-2.0
"""Features that are values of Python: NumPy arrays, numbers and strings, which become constants of the graph."""

from typing import Any

import numpy as np
from tensorflow.python.framework import constant_op
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import tensor as tensor_lib
from tensorflow.python.framework import tensor_util

# NumPy's own numbers, such as np.int64(3), are np.generic.
_TYPES = (bool, int, float, complex, str, bytes, np.ndarray, np.generic)


class PythonValue:
  """A value of Python that a record carries, checked before the graph has a node for it.

  Attributes:
    dtype: The type that `tf.constant` gives the value.
  """

  def __init__(self, label: str, value: Any):
    """Checks that TensorFlow has a type for a value.

    Args:
      label: The label of the feature in error messages.
      value: A value for which `is_python_value` returns True.

    Raises:
      TypeError: If TensorFlow has no type for `value`.
      ValueError: If `value` is too large for a constant, or a string without a UTF-8 encoding.
    """
    try:
      self._proto = tensor_util.make_tensor_proto(value)
    except (TypeError, ValueError) as error:
      kind = TypeError if isinstance(error, TypeError) else ValueError
      raise kind(
          f"{label} must be a value that tf.constant accepts, got {value!r} of type {type(value).__name__}:"
          f" {error}") from error
    self.dtype = dtypes.as_dtype(self._proto.dtype)

  def add_to_graph(self) -> tensor_lib.Tensor:
    """Adds the constant to the default graph, and returns its tensor."""
    return constant_op.constant(self._proto, name="constant")


def is_python_value(leaf: Any) -> bool:
  """Returns whether a leaf of features is a NumPy array, or a number or string of Python or NumPy."""
  return isinstance(leaf, _TYPES)
