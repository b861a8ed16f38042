# SPDX-License-Identifier: Apache-2.0
"""Layers that several models use."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence

import tensorflow as tf

Activation = Callable[[tf.Tensor], tf.Tensor]


def dense(x: tf.Tensor, size: int, name: str, activation: Activation | None = None) -> tf.Tensor:
  """Returns activation(x·W + b).

  Args:
    x: Shape [..., n].
    size: The size of the last dimension of the result.
    name: The scope of the variables.
    activation: Applied to the result, in the same scope, so that it may have variables; None means none.
  """
  with tf.variable_scope(name):
    weights = tf.get_variable("weights", [int(x.shape[-1]), size])
    bias = tf.get_variable("bias", [size], initializer=tf.zeros_initializer())
    y = tf.tensordot(x, weights, 1) if x.shape.rank > 2 else tf.matmul(x, weights)
    return activation(y + bias) if activation else y + bias


def mlp(x: tf.Tensor, sizes: Sequence[int], name: str, activation: Activation = tf.nn.relu) -> tf.Tensor:
  """Returns x after dense layers of the given sizes, each with the activation."""
  with tf.variable_scope(name):
    for index, size in enumerate(sizes):
      x = dense(x, size, f"layer_{index}", activation)
  return x


def logit(x: tf.Tensor, name: str = "logit") -> tf.Tensor:
  """Returns a linear function of each row: from shape [batch, n] to [batch]."""
  return tf.squeeze(dense(x, 1, name), 1)


def table(name: str, rows: int, size: int) -> tf.Variable:
  """Returns the variable of an embedding, of shape [rows, size]."""
  initializer = tf.random_uniform_initializer(-(rows**-0.5), rows**-0.5)
  return tf.get_variable(name, [rows, size], initializer=initializer)
