# SPDX-License-Identifier: Apache-2.0
"""`tf.train.mark_target_node`: keeps nodes in the training step."""

from typing import Any

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib
from tensorflow.python.ops import variables
from tensorflow.python.platform import tf_logging
from tensorflow.python.util import nest
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import vocabulary

_ALLOWED = (
    "tf.train.mark_target_node takes tensors, operations and variables of a graph, and the names of"
    " nodes that the default graph has.")


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

  Some entries that programs written for DeepRec pass mark no node of their own. They only log a
  warning: None and a name that the graph lacks mark nothing, a `PartitionedVariable` marks each of
  its parts.

  Args:
    target_nodes: A tensor, SparseTensor, RaggedTensor, operation or variable of a graph, the name
      of a tensor or operation that the default graph has, or any nesting of lists, tuples and dicts
      of them. An empty list marks nothing.

  Raises:
    TypeError: If an entry is none of these.
    ValueError: If the call is made in eager mode.
  """
  if context.executing_eagerly():
    raise ValueError(
        "tf.train.mark_target_node marks nodes of a graph that a session runs, but eager"
        " execution is on. Call it inside `with tf.Graph().as_default():`.")
  # All entries are checked before the first node is marked.
  operations = []
  for path, entry in nest.flatten_with_tuple_paths(target_nodes, expand_composites=True):
    operations += _operations("target_nodes" + "".join(f"[{key!r}]" for key in path), entry)
  for operation in operations:
    operation._set_attr(vocabulary.TARGET_ATTR, attr_value_pb2.AttrValue(b=True))


def _operations(label: str, entry: Any) -> list[ops.Operation]:
  """Returns the operations that an entry stands for, and warns if that may not be what was meant."""
  if isinstance(entry, ops.Operation):
    return [entry]
  if isinstance(entry, (tensor_lib.Tensor, variables.Variable)) and not isinstance(
      entry, ops.EagerTensor):
    return [entry.op]
  if isinstance(entry, variables.PartitionedVariable):
    parts = list(entry)
    tf_logging.warning(
        "%s is the PartitionedVariable %r: each of its %d parts is marked. %s",
        label, entry.name, len(parts), _ALLOWED)
    return [part.op for part in parts]
  if isinstance(entry, str):
    return _named(label, entry)
  if entry is None:
    tf_logging.warning("%s is None and marks nothing. %s", label, _ALLOWED)
    return []
  raise TypeError(
      f"{label} must be a tensor, an operation or a variable of a graph, or the name of a node, got"
      f" {entry!r} of type {type(entry).__name__}.")


def _named(label: str, name: str) -> list[ops.Operation]:
  """Returns the operation that a name stands for, or warns that the default graph has none."""
  try:
    element = ops.get_default_graph().as_graph_element(name)
  except (KeyError, ValueError):
    tf_logging.warning(
        "%s is %r, which names neither a tensor nor an operation of the default graph, and marks"
        " nothing. %s", label, name, _ALLOWED)
    return []
  return [element.op if isinstance(element, tensor_lib.Tensor) else element]
