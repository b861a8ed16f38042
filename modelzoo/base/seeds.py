# SPDX-License-Identifier: Apache-2.0
"""Initial values of variables that depend on the seed and on the variable's name alone."""

from __future__ import annotations

import contextlib
import zlib
from typing import Any

import tensorflow as tf


def variable_scope(seed: int) -> contextlib.AbstractContextManager:
  """Opens the scope in which a model creates its variables.

  TensorFlow derives the seeds of random ops from the number of nodes in the graph, which a stage changes. Here the name
  of a variable determines its seed, so that a model starts with the same values, however its input is staged.

  The variables are resource variables: a step that reads a variable of the older kind may see its own update or not.
  """

  def get_variable(getter: Any, name: str, initializer: Any = None, **arguments: Any) -> tf.Variable:
    if isinstance(initializer, type):
      initializer = initializer()
    if hasattr(initializer, "seed"):
      own = initializer.get_config() | {"seed": zlib.crc32(f"{seed}/{name}".encode()) & 0x7FFFFFFF}
      initializer = type(initializer).from_config(own)
    return getter(name, initializer=initializer, **arguments)

  return tf.variable_scope(
      tf.get_variable_scope(), custom_getter=get_variable, use_resource=True,
      initializer=tf.glorot_uniform_initializer())
