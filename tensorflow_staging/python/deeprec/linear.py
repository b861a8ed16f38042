# SPDX-License-Identifier: Apache-2.0
"""The dense layer that TensorFlow 1's cells for recurrent networks use inside."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import Optional
from typing import Union

from tensorflow.python.framework import tensor as tensor_lib
from tensorflow.python.ops import array_ops
from tensorflow.python.ops import init_ops
from tensorflow.python.ops import math_ops
from tensorflow.python.ops import variable_scope

_Inputs = Union[tensor_lib.Tensor, Sequence[tensor_lib.Tensor]]


class Linear:
  """Multiplies inputs that it concatenates by a kernel, and adds a bias.

  The variables are "kernel" and "bias" of the variable scope in which the object is made, as in
  `tf.contrib.rnn.python.ops.core_rnn_cell._Linear` of TensorFlow 1.
  """

  def __init__(
      self,
      args: _Inputs,
      output_size: int,
      build_bias: bool,
      bias_initializer: Optional[Callable[..., Any]] = None,
      kernel_initializer: Optional[Callable[..., Any]] = None):
    """Makes the variables.

    Args:
      args: A tensor, or a list or tuple of tensors, of shape `[batch, width]` with known widths.
      output_size: The width of the result.
      build_bias: Whether there is a bias.
      bias_initializer: Initialises the bias; None stands for zeros.
      kernel_initializer: Initialises the kernel; None stands for that of the variable scope.

    Raises:
      ValueError: If an input is not of rank 2, or its width is unknown.
    """
    inputs = _listed(args)
    for tensor in inputs:
      if tensor.shape.rank != 2 or tensor.shape[1] is None:
        raise ValueError(f"args must be tensors of shape [batch, width] with a known width, got {tensor!r}.")
    width = sum(int(tensor.shape[1]) for tensor in inputs)
    dtype = inputs[0].dtype
    self._kernel = variable_scope.get_variable(
        "kernel", [width, output_size], dtype=dtype, initializer=kernel_initializer)
    self._bias = None
    if build_bias:
      self._bias = variable_scope.get_variable(
          "bias", [output_size], dtype=dtype, initializer=bias_initializer or init_ops.zeros_initializer())

  def __call__(self, args: _Inputs) -> tensor_lib.Tensor:
    """Returns a tensor of shape `[batch, output_size]`, computed from inputs as those of the constructor."""
    result = math_ops.matmul(array_ops.concat(_listed(args), axis=1), self._kernel)
    return result if self._bias is None else result + self._bias


def _listed(args: _Inputs) -> list[tensor_lib.Tensor]:
  return list(args) if isinstance(args, (list, tuple)) else [args]
