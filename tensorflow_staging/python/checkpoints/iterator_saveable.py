# SPDX-License-Identifier: Apache-2.0
"""Saves the position of an iterator, and keeps a restored position.

A collection of the graph lists the name scopes of the ops that do so. TensorFlow calls the functions at the end of this
file with each of them when it exports or imports the graph, so that an imported graph saves its iterators, too.
"""

from collections.abc import Sequence
from typing import Optional

from google.protobuf import wrappers_pb2
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.data.ops import options as options_lib
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops
from tensorflow.python.ops import control_flow_ops
from tensorflow.python.ops import gen_dataset_ops
from tensorflow.python.ops import gen_resource_variable_ops
from tensorflow.python.training import saver as saver_lib

from tensorflow_staging.python import vocabulary

# The name of the collection.
_NAME = "staging_saved_iterators"

# The attribute of a graph that lists its saveables. They refer to the graph, so a dictionary with the graph as a weak
# key would keep it alive for ever.
_SAVEABLES = "_staging_iterator_saveables"


class IteratorSaveable(saver_lib.BaseSaverBuilder.SaveableObject):
  """The position of one iterator, under the name that TensorFlow's own saveable gives it.

  The graph passes add the records of the iterator's stages to what it saves and restores
  (core/graph/rewrite/checkpoint_nodes.h).

  A restored position is also held in a variable of its own, because a program may initialise the
  iterator after the restore; held_positions.py then sets the position again.
  """

  def __init__(self, graph: ops.Graph, scope: str):
    """Finds the ops that save the position and set it again.

    Args:
      graph: The graph of the iterator.
      scope: The name scope in which `add_to_graph` has created them.
    """
    self.position = graph.get_tensor_by_name(f"{scope}/position:0")
    self.held = graph.get_tensor_by_name(f"{scope}/held:0")
    self.is_held = graph.get_tensor_by_name(f"{scope}/is_held:0")
    self.set_held = graph.get_operation_by_name(f"{scope}/set_held")
    self.release = graph.get_operation_by_name(f"{scope}/release")
    handle = self.position.op.inputs[0]
    specs = [
        saver_lib.BaseSaverBuilder.SaveSpec(self.position, "", handle.op.name + "_STATE", device=handle.device)
    ]
    super().__init__(handle, specs, handle.op.name)

  def restore(self, restored_tensors: list[ops.Tensor], restored_shapes: list) -> ops.Operation:
    """Returns the op that holds a position and, if the iterator can be initialised now, also sets it."""
    del restored_shapes
    position, = restored_tensors
    with ops.colocate_with(self.op):
      restored = [gen_resource_variable_ops.assign_variable_op(self.held, position)]
      if self.is_set_at_once():
        with ops.control_dependencies(self.initializers()):
          restored.append(gen_dataset_ops.deserialize_iterator(self.op, position))
      return control_flow_ops.group(*restored)

  def policy(self) -> options_lib.ExternalStatePolicy:
    """Returns what happens if a dataset depends on state that cannot be saved."""
    return options_lib.ExternalStatePolicy(self.position.op.get_attr("external_state_policy"))

  def is_set_at_once(self) -> bool:
    """Whether a restore sets the position; otherwise it only holds it.

    An iterator must be initialised before its position is set. A restore can do that unless the
    initialiser needs feeds, or there are several.
    """
    initializers = self.initializers()
    if not initializers:
      return self.op.op.type == "OneShotIterator"
    return len(initializers) == 1 and not _needs_feeds(initializers[0])

  def initializers(self) -> list[ops.Operation]:
    """Returns the ops that give the iterator a dataset."""
    return [user for user in self.op.consumers() if user.type in vocabulary.ITERATOR_INITIALIZER_OPS]


def add_to_graph(handle: ops.Tensor, policy: options_lib.ExternalStatePolicy) -> None:
  """Lets the savers that are created later save the position of an iterator.

  Args:
    handle: Scalar; the handle of the iterator.
    policy: What happens if a dataset depends on state that cannot be saved.
  """
  graph = handle.graph
  with graph.name_scope("staging_saved_iterator") as scope, ops.colocate_with(handle), ops.control_dependencies(None):
    gen_dataset_ops.serialize_iterator(handle, external_state_policy=policy.value, name="position")
    held = gen_resource_variable_ops.var_handle_op(
        dtype=dtypes.variant, shape=[None], shared_name=_shared_name(handle), name="held")
    gen_resource_variable_ops.var_is_initialized_op(held, name="is_held")
    position = gen_resource_variable_ops.read_variable_op(held, dtypes.variant, name="held_position")
    gen_dataset_ops.deserialize_iterator(handle, position, name="set_held")
    gen_resource_variable_ops.destroy_resource_op(held, name="release")
  graph.add_to_collection(_NAME, scope.rstrip("/"))
  saveable = IteratorSaveable(graph, scope.rstrip("/"))
  graph.add_to_collection(ops.GraphKeys.SAVEABLE_OBJECTS, saveable)
  _list(graph, saveable)


def saveables_of(graph: ops.Graph) -> Sequence[IteratorSaveable]:
  """Returns the saveables of a graph's iterators."""
  return getattr(graph, _SAVEABLES, ())


def _list(graph: ops.Graph, saveable: IteratorSaveable) -> None:
  setattr(graph, _SAVEABLES, [*saveables_of(graph), saveable])


def _shared_name(handle: ops.Tensor) -> str:
  return f"staging/held/{handle.op.name}"


def _needs_feeds(op: ops.Operation) -> bool:
  """Whether an op depends on a placeholder."""
  seen = {op}
  to_visit = [op]
  while to_visit:
    visited = to_visit.pop()
    if visited.type in ("Placeholder", "PlaceholderV2"):
      return True
    inputs = [tensor.op for tensor in visited.inputs] + list(visited.control_inputs)
    new = [i for i in inputs if i not in seen]
    seen.update(new)
    to_visit.extend(new)
  return False


def _to_proto(scope: str, export_scope: Optional[str] = None) -> Optional[wrappers_pb2.StringValue]:
  """Strips a name scope from an entry of the collection; returns None if its ops are outside of it."""
  if export_scope and not scope.startswith(f"{export_scope.rstrip('/')}/"):
    return None
  return wrappers_pb2.StringValue(value=ops.strip_name_scope(scope, export_scope))


def _from_proto(message: wrappers_pb2.StringValue, import_scope: Optional[str] = None) -> str:
  """Makes a saveable of imported ops; returns the entry of the collection for them."""
  graph = ops.get_default_graph()
  scope = ops.prepend_name_scope(message.value, import_scope)
  saveable = IteratorSaveable(graph, scope)
  # Two imports of one graph must not share a variable.
  shared_name = attr_value_pb2.AttrValue(s=_shared_name(saveable.op).encode())
  if saveable.held.op.get_attr("shared_name") != shared_name.s:
    saveable.held.op._set_attr("shared_name", shared_name)
  # TensorFlow exports a saveable as the name of its iterator, and imports it as that op, which no saver takes.
  saveables = graph.get_collection_ref(ops.GraphKeys.SAVEABLE_OBJECTS)
  saveables[:] = [entry for entry in saveables if entry is not saveable.op.op] + [saveable]
  _list(graph, saveable)
  return scope


ops.register_proto_function(
    _NAME, proto_type=wrappers_pb2.StringValue, to_proto=_to_proto, from_proto=_from_proto)
