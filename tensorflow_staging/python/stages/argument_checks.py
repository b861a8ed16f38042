# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments that several public functions share.

Each one raises at the call, before anything is added to the graph, and says which argument, the
value it got and what is allowed.
"""

import operator
from typing import Any

from tensorflow.python.eager import context
from tensorflow.python.framework import ops

# Protocol buffers and op attributes carry these values as int32.
_INT32_MAX = 2**31 - 1


def check_int(argument: str, value: Any, minimum: int) -> None:
  """Checks that `value` is an integer in [minimum, 2**31 - 1].

  Args:
    argument: The name of the argument, for the message.
    value: What the caller gave. NumPy integers count as integers, `bool` does not.
    minimum: The smallest allowed value.

  Raises:
    TypeError: If `value` is no integer.
    ValueError: If `value` is out of range.
  """
  allowed = f"an integer from {minimum} to {_INT32_MAX}"
  try:
    number = operator.index(value)
  except TypeError:
    number = None
  if number is None or isinstance(value, bool):
    raise TypeError(
        f"{argument} must be {allowed}, got {value!r} of type {type(value).__name__}.")
  if not minimum <= number <= _INT32_MAX:
    raise ValueError(f"{argument} must be {allowed}, got {number}.")


def check_bool(argument: str, value: Any) -> None:
  """Checks that `value` is True or False.

  Args:
    argument: The name of the argument, for the message.
    value: What the caller gave.

  Raises:
    TypeError: If `value` is no `bool`.
  """
  if not isinstance(value, bool):
    raise TypeError(
        f"{argument} must be True or False, got {value!r} of type {type(value).__name__}.")


def check_name(value: Any) -> None:
  """Checks the `name` of a stage: None, or a string that opens a new name scope.

  Args:
    value: What the caller gave as `name`.

  Raises:
    TypeError: If `value` is neither None nor a string.
    ValueError: If `value` ends with "/", which would reuse an open name scope, and with it
      another stage's buffer.
  """
  if value is None:
    return
  if not isinstance(value, str):
    raise TypeError(
        f"name must be None or a string, got {value!r} of type {type(value).__name__}.")
  if value.endswith("/"):
    raise ValueError(
        f"name must not end with '/', got {value!r}: every stage needs a name of its own.")


def session_graph(function: str) -> ops.Graph:
  """The default graph, checked to be one that a session can run and a hook can find.

  Args:
    function: The public name of the calling function, for the message.

  Returns:
    The default graph.

  Raises:
    ValueError: In eager mode, while a `tf.function` is traced, or inside the body of a
      `tf.cond` or `tf.while_loop`.
  """
  if context.executing_eagerly():
    raise ValueError(
        f"{function} adds to a graph that a session runs, but eager execution is on. Build the"
        " graph inside `with tf.Graph().as_default():`, or call"
        " tf.compat.v1.disable_eager_execution() at the start of the program.")
  graph = ops.get_default_graph()
  if graph.building_function or graph._get_control_flow_context() is not None:
    raise ValueError(
        f"{function} must be called in the graph that the session runs, not inside a"
        " tf.function, a tf.data function, tf.cond or tf.while_loop: nothing could run ahead"
        " of the step from there.")
  return graph
