# SPDX-License-Identifier: Apache-2.0
"""`tf.async_embedding_mark_node`: what leads to a tensor may run ahead of the step, lookups included."""

from typing import Any

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib
from tensorflow.python.util import nest
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import vocabulary


@tf_export("async_embedding_mark_node")
def async_embedding_mark_node(embedding_tensor: Any) -> None:
  """Lets all that leads to a tensor run ahead of the step, with the values of the variables that it reads.

  Has an effect only in a session with `optimizer_options.do_async_embedding`. Such a session finds
  lookups by itself (`tf.gather`, `tf.nn.embedding_lookup` and what is built on them, such as feature
  columns). Mark what it does not find: rows that are chosen in another way, as by the product of an
  indicator with a variable, or a dense feature in a graph without a lookup, such as an indicator
  column. What the tensor is computed from may then miss the last updates, as a lookup may. Marks are
  stored in the graph: each call adds to the earlier ones. Call it before the session is created.

  For example:

  ```python
  import tensorflow as tf

  with tf.Graph().as_default():
    keys = tf.compat.v1.data.make_one_shot_iterator(tf.compat.v1.data.Dataset.range(9).batch(3)).get_next()
    table = tf.compat.v1.get_variable("table", [5, 2])
    rows = tf.matmul(tf.one_hot(keys % 5, 5), table)
    tf.async_embedding_mark_node(rows)
  ```

  Args:
    embedding_tensor: A tensor, SparseTensor or RaggedTensor of a graph, or any nesting of lists,
      tuples and dicts of them.

  Raises:
    TypeError: If an entry is none of these.
    ValueError: If there is no entry, or if the call is made in eager mode.
  """
  if context.executing_eagerly():
    raise ValueError(
        "tf.async_embedding_mark_node marks nodes of a graph that a session runs, but eager execution"
        " is on. Call it inside `with tf.Graph().as_default():`.")
  entries = nest.flatten_with_tuple_paths(embedding_tensor, expand_composites=True)
  if not entries:
    raise ValueError(f"embedding_tensor must have at least one tensor, got {embedding_tensor!r}.")
  # All entries are checked before the first node is marked.
  for path, entry in entries:
    if not isinstance(entry, tensor_lib.Tensor) or isinstance(entry, ops.EagerTensor):
      label = "embedding_tensor" + "".join(f"[{key!r}]" for key in path)
      raise TypeError(f"{label} must be a tensor of a graph, got {entry!r} of type {type(entry).__name__}.")
  for _, entry in entries:
    entry.op._set_attr(vocabulary.EMBEDDING_ATTR, attr_value_pb2.AttrValue(b=True))


def marked_operations(graph: ops.Graph) -> list[ops.Operation]:
  """Returns the operations of a graph that `async_embedding_mark_node` has marked."""
  return [operation for operation in graph.get_operations() if vocabulary.EMBEDDING_ATTR in operation.node_def.attr]
