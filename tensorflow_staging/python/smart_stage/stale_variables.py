# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.allow_stale`: chooses the variables in which lookups may run ahead of the training step."""

from typing import Any

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.ops import variables as variables_lib
from tensorflow.python.util import nest
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import vocabulary


@tf_export("staging.allow_stale")
def allow_stale(variables: Any) -> None:
  """Chooses the variables whose values may miss the last updates when rows are looked up in them.

  Has an effect only in a session with `optimizer_options.do_async_embedding`, which runs lookups
  (`tf.gather`, `tf.nn.embedding_lookup` and what is built on them) ahead of the training step. A
  lookup then misses the updates of at most `capacity + threads_num` steps, the fields of
  `optimizer_options.async_embedding_options`, if there is one producer; docs/smart_stage.md says
  more. Without a call of this function, lookups in all embedding variables run ahead. The marks are
  stored in the graph: each call adds to the earlier ones. Call it before the session is created.

  For example:

  ```python
  import tensorflow as tf

  with tf.Graph().as_default():
    items = tf.compat.v1.get_variable("items", [1000, 16])
    tf.staging.allow_stale([items])
  ```

  Args:
    variables: A variable of the default graph, a `PartitionedVariable`, or any nesting of lists,
      tuples and dicts of them.

  Raises:
    TypeError: If an entry is no variable.
    ValueError: If there is no entry, if an entry is a variable of another graph, or if the call is
      made in eager mode.
  """
  if context.executing_eagerly():
    raise ValueError(
        "tf.staging.allow_stale marks variables of a graph that a session runs, but eager execution"
        " is on. Call it inside `with tf.Graph().as_default():`.")
  # All entries are checked before the first variable is marked.
  operations = []
  for path, entry in nest.flatten_with_tuple_paths(variables):
    operations += _operations("variables" + "".join(f"[{key!r}]" for key in path), entry)
  if not operations:
    raise ValueError(f"variables must have at least one variable, got {variables!r}.")
  for operation in operations:
    operation._set_attr(vocabulary.MAY_BE_STALE_ATTR, attr_value_pb2.AttrValue(b=True))


def _operations(label: str, entry: Any) -> list[ops.Operation]:
  """Returns the operations of the variable, or of its parts."""
  if isinstance(entry, variables_lib.PartitionedVariable):
    return [operation for part in entry for operation in _operations(label, part)]
  if not isinstance(entry, variables_lib.Variable):
    raise TypeError(
        f"{label} must be a variable of a graph, got {entry!r} of type {type(entry).__name__}.")
  graph = ops.get_default_graph()
  if entry.graph is not graph:
    raise ValueError(
        f"{label} is variable {entry.name!r} of graph {entry.graph!r}; it must be a variable of the"
        f" default graph, {graph!r}.")
  return [entry.op]
