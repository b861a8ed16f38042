# SPDX-License-Identifier: Apache-2.0
"""`tf.train.mark_target_node`: names what a training step is after."""

from typing import Any

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.ops import variables
from tensorflow.python.util import nest
from tensorflow.python.util.tf_export import tf_export

_TARGET_ATTR = "_staging_target"


@tf_export("train.mark_target_node")
def mark_target_node(target_nodes: Any) -> None:
  """Marks nodes as targets of the training step, so that SmartStage leaves them in the step.

  What SmartStage runs ahead ends before a marked node. Mark what the program fetches and what is
  computed from input alone, such as a metric over the features. The mark belongs to the graph, is
  added to earlier ones, and travels with the graph's definition.

  For example:

  ```python
  import tensorflow as tf

  with tf.Graph().as_default():
    loss = tf.reduce_mean(tf.random.uniform([8]))
    tf.train.mark_target_node([loss])
  ```

  Args:
    target_nodes: A tensor, SparseTensor, RaggedTensor, operation or variable of a graph, or any
      nesting of lists, tuples and dicts of them.

  Raises:
    TypeError: If an entry is none of these.
    ValueError: If there is no entry, or in eager mode.
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
    operation._set_attr(_TARGET_ATTR, attr_value_pb2.AttrValue(b=True))


def _operation(path, entry: Any) -> ops.Operation:
  if isinstance(entry, ops.Operation):
    return entry
  if isinstance(entry, (ops.Tensor, variables.Variable)) and not isinstance(
      entry, ops.EagerTensor):
    return entry.op
  place = "target_nodes" + "".join(f"[{step!r}]" for step in path)
  raise TypeError(
      f"{place} must be a tensor, an operation or a variable of a graph, got {entry!r} of type"
      f" {type(entry).__name__}.")
