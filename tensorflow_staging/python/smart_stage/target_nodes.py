# SPDX-License-Identifier: Apache-2.0
"""`tf.train.mark_target_node`: keeps nodes in the training step."""

from typing import Any

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.ops import variables
from tensorflow.python.util import nest
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import vocabulary


@tf_export("train.mark_target_node")
def mark_target_node(target_nodes: Any) -> None:
  """Marks nodes so that SmartStage keeps them, and all that depends on them, in the training step.

  SmartStage ends its regions before a marked node. Mark the tensors that the program fetches and
  that are computed from input alone, such as a metric over the features. Marks are stored in the
  graph: each call adds to the earlier marks, and the graph's definition contains them.

  For example:

  ```python
  import tensorflow as tf

  with tf.Graph().as_default():
    dataset = tf.compat.v1.data.Dataset.range(100).batch(10)
    features = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
    largest = tf.reduce_max(features)
    tf.train.mark_target_node([largest])
  ```

  Args:
    target_nodes: A tensor, SparseTensor, RaggedTensor, operation or variable of a graph, or any
      nesting of lists, tuples and dicts of them.

  Raises:
    TypeError: If an entry is none of these.
    ValueError: If `target_nodes` holds no entry, or the call is made in eager mode.
  """
  if context.executing_eagerly():
    raise ValueError(
        "tf.train.mark_target_node marks nodes of a graph that a session runs, but eager"
        " execution is on. Call it inside `with tf.Graph().as_default():`.")
  entries = nest.flatten_with_tuple_paths(target_nodes, expand_composites=True)
  if not entries:
    raise ValueError(f"target_nodes must hold at least one node, got {target_nodes!r}.")
  operations = [_operation(path, entry) for path, entry in entries]
  for operation in operations:
    operation._set_attr(vocabulary.TARGET_ATTR, attr_value_pb2.AttrValue(b=True))


def _operation(path, entry: Any) -> ops.Operation:
  if isinstance(entry, ops.Operation):
    return entry
  if isinstance(entry, (ops.Tensor, variables.Variable)) and not isinstance(
      entry, ops.EagerTensor):
    return entry.op
  label = "target_nodes" + "".join(f"[{key!r}]" for key in path)
  raise TypeError(
      f"{label} must be a tensor, an operation or a variable of a graph, got {entry!r} of type"
      f" {type(entry).__name__}.")
