# SPDX-License-Identifier: Apache-2.0
"""Argument checks that the public functions share.

The public functions run these checks before they add anything to the graph. Each error names the
argument, its value and the allowed values.
"""

import operator
from typing import Any

from tensorflow.python.eager import context
from tensorflow.python.framework import ops

from tensorflow_staging.python import vocabulary

# Protocol buffers and op attributes carry most values as int32.
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


def check_int(
    argument: str, value: Any, minimum: int, maximum: int = INT32_MAX, autotune: bool = False) -> None:
  """Checks that `value` is an integer in [minimum, maximum].

  Args:
    argument: The argument's name, for the error message.
    value: The argument's value. NumPy integers count as integers; a `bool` does not.
    minimum: The smallest allowed value.
    maximum: The largest allowed value.
    autotune: Whether `tf.data.AUTOTUNE` is allowed, too.

  Raises:
    TypeError: If `value` is not an integer.
    ValueError: If `value` is out of range.
  """
  allowed = f"an integer from {minimum} to {maximum}" + (", or tf.data.AUTOTUNE" if autotune else "")
  try:
    number = operator.index(value)
  except TypeError:
    number = None
  if number is None or isinstance(value, bool):
    raise TypeError(
        f"{argument} must be {allowed}, got {value!r} of type {type(value).__name__}.")
  if autotune and number == vocabulary.AUTOTUNE:
    return
  if not minimum <= number <= maximum:
    raise ValueError(f"{argument} must be {allowed}, got {number}.")


def check_bool(argument: str, value: Any) -> None:
  """Checks that `value` is True or False.

  Args:
    argument: The argument's name, for the error message.
    value: The argument's value.

  Raises:
    TypeError: If `value` is not a `bool`.
  """
  if not isinstance(value, bool):
    raise TypeError(
        f"{argument} must be True or False, got {value!r} of type {type(value).__name__}.")


def resolve_num_clients(num_clients: Any, num_client: Any) -> Any:
  """Returns the number of consumers, which a caller passes as `num_clients` or as `num_client`.

  Args:
    num_clients: The value of the argument `num_clients`, whose default is 1. It is returned unchecked
      if `num_client` is None.
    num_client: The value of the argument `num_client`, or None if the caller did not pass it.

  Returns:
    The number of consumers.

  Raises:
    TypeError: If `num_client` is neither None nor an integer.
    ValueError: If `num_client` is out of range, or the two arguments disagree.
  """
  if num_client is None:
    return num_clients
  if num_clients not in (1, num_client):
    raise ValueError(
        "num_client is another spelling of num_clients: give one of them, got"
        f" num_clients={num_clients!r} and num_client={num_client!r}.")
  check_int("num_client", num_client, minimum=1)
  return num_client


def check_name(value: Any) -> None:
  """Checks the `name` of a stage: None, or a string that opens a new name scope.

  Args:
    value: The value of the argument `name`.

  Raises:
    TypeError: If `value` is neither None nor a string.
    ValueError: If `value` ends with "/". That name would reopen an existing name scope and
      share the buffer of the stage in it.
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
  """Returns the default graph after checking that a session can run stages in it.

  Args:
    function: The public name of the calling function, for the error message.

  Returns:
    The default graph.

  Raises:
    ValueError: In eager mode, while a `tf.function` or a tf.data function is traced, or inside
      the body of a `tf.cond` or `tf.while_loop`.
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
        " tf.function, a tf.data function, tf.cond or tf.while_loop: a stage inside one of these"
        " could not run ahead of the step.")
  return graph
