# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow 2's stages say in a program of graphs and sessions, which they do not serve."""

import sys
from typing import NoReturn

from tensorflow.python.eager import context
from tensorflow.python.framework import ops

from tensorflow_staging.python.api import version_2_names


def raise_if_off(name: str) -> None:
  """Raises an error if the program as a whole has no eager execution.

  Args:
    name: What needs it, the subject of a sentence.

  Raises:
    RuntimeError: If it is off.
  """
  # A graph that a program of TensorFlow 2 builds is no reason.
  if context.default_execution_mode == context.GRAPH_MODE and not ops.executing_eagerly_outside_functions():
    raise_off(name)


def raise_off(name: str, more: str = "") -> NoReturn:
  """Raises the error.

  Args:
    name: What needs eager execution, the subject of a sentence.
    more: A further sentence.

  Raises:
    RuntimeError: Always.
  """
  # The variable is set in a program of TensorFlow 2 that has turned eager execution off.
  remedy = "Do not call tf.compat.v1.disable_eager_execution()." if _has_version_2_root() else version_2_names.REMEDY
  raise RuntimeError(" ".join(filter(None, [f"{name} is for TensorFlow 2, and eager execution is off.", remedy, more])))


def _has_version_2_root() -> bool:
  return getattr(sys.modules["tensorflow"], "_major_api_version", 1) == 2
