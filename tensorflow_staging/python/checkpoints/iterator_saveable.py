# SPDX-License-Identifier: Apache-2.0
"""The position of an iterator as a part of a graph's checkpoints.

A collection of the graph lists the name scopes of the ops that save the positions. TensorFlow calls the functions at
the end of this file with each of them when it exports or imports the graph, so that an imported graph saves its
iterators, too.
"""

from collections.abc import Sequence
from typing import Optional

from google.protobuf import wrappers_pb2
from tensorflow.core.framework import attr_value_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.python.data.ops import options as options_lib
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib
from tensorflow.python.ops import gen_dataset_ops
from tensorflow.python.training import saver as saver_lib

from tensorflow_staging.python import vocabulary

# The name of the collection.
_NAME = "staging_saved_iterators"

# The attribute of a graph that lists its saveables. They refer to the graph, so a dictionary with the graph as a weak
# key would keep it alive for ever.
_SAVEABLES = "_staging_iterator_saveables"


# Ops that pass the handle of an iterator on.
_PASSING_OPS = ("Enter", "Exit", "Identity", "Merge", "NextIteration", "Switch")


class IteratorSaveable(saver_lib.BaseSaverBuilder.SaveableObject):
  """The position of one iterator, under the name that TensorFlow's own saveable gives it.

  The iterator itself adds its ledger to what is saved (core/sources/saved_state.h). A restored position waits in it for
  the initialiser of its dataset, which a program may run after the restore (core/sources/restored_position.h).
  """

  def __init__(self, graph: ops.Graph, scope: str):
    """Finds the op that saves the position.

    Args:
      graph: The graph of the iterator.
      scope: The name scope in which `add_to_graph` has created it.
    """
    self.position = graph.get_tensor_by_name(f"{scope}/position:0")
    handle = self.position.op.inputs[0]
    specs = [
        saver_lib.BaseSaverBuilder.SaveSpec(self.position, "", handle.op.name + "_STATE", device=handle.device)
    ]
    super().__init__(handle, specs, handle.op.name)

  def restore(self, restored_tensors: list[tensor_lib.Tensor], restored_shapes: list) -> ops.Operation:
    """Returns the op that restores a position, after initialising the iterator if that is possible now."""
    del restored_shapes
    position, = restored_tensors
    with ops.colocate_with(self.op):
      with ops.control_dependencies(self.initializers() if self.can_be_initialised() else []):
        restore = gen_dataset_ops.deserialize_iterator(self.op, position)
    restore._set_attr(vocabulary.AWAITS_INITIALIZER_ATTR, attr_value_pb2.AttrValue(b=True))
    return restore

  def policy(self) -> options_lib.ExternalStatePolicy:
    """Returns what happens if a dataset depends on state that cannot be saved."""
    return options_lib.ExternalStatePolicy(self.position.op.get_attr("external_state_policy"))

  def can_be_initialised(self) -> bool:
    """Whether the iterator can be initialised by itself.

    There is one initialiser, which needs no feeds and is in no branch, loop or function.
    """
    initializers = self.initializers()
    if not initializers:
      return self.op.op.type == "OneShotIterator"
    return len(initializers) == 1 and initializers[0] in _initializers(self.op) and not _needs_feeds(initializers[0])

  def initializers(self) -> list[ops.Operation]:
    """Returns the ops that give the iterator a dataset, themselves or in a function that they call."""
    found = []
    # Branches and loops of version 1 of control flow pass the handle on.
    handles = [self.op]
    for handle in handles:
      found.extend(_initializers(handle))
      for user in handle.consumers():
        if user.type in _PASSING_OPS:
          handles.extend(output for output in user.outputs if all(output is not handle for handle in handles))
        elif _calls_an_initializer(user):
          found.append(user)
    return found


def add_to_graph(handle: tensor_lib.Tensor, policy: options_lib.ExternalStatePolicy) -> None:
  """Lets the savers that are created later save the position of an iterator.

  Args:
    handle: Scalar; the handle of the iterator.
    policy: What happens if a dataset depends on state that cannot be saved.
  """
  graph = handle.graph
  with graph.name_scope("staging_saved_iterator") as scope, ops.colocate_with(handle), ops.control_dependencies(None):
    gen_dataset_ops.serialize_iterator(handle, external_state_policy=policy.value, name="position")
  graph.add_to_collection(_NAME, scope.rstrip("/"))
  saveable = IteratorSaveable(graph, scope.rstrip("/"))
  graph.add_to_collection(ops.GraphKeys.SAVEABLE_OBJECTS, saveable)
  _list(graph, saveable)


def saveables_of(graph: ops.Graph) -> Sequence[IteratorSaveable]:
  """Returns the saveables of a graph's iterators."""
  return getattr(graph, _SAVEABLES, ())


def _list(graph: ops.Graph, saveable: IteratorSaveable) -> None:
  setattr(graph, _SAVEABLES, [*saveables_of(graph), saveable])


def _initializers(handle: tensor_lib.Tensor) -> list[ops.Operation]:
  return [user for user in handle.consumers() if user.type in vocabulary.ITERATOR_INITIALIZER_OPS]


def _calls_an_initializer(op: ops.Operation) -> bool:
  """Whether a function that an op calls has an initialiser, of whatever iterator."""
  seen = set()
  to_visit = _called_functions(op.node_def)
  while to_visit:
    name = to_visit.pop()
    if name in seen or not op.graph._is_function(name):
      continue
    seen.add(name)
    for node in op.graph._get_function(name).cached_definition.node_def:
      if node.op in vocabulary.ITERATOR_INITIALIZER_OPS:
        return True
      to_visit.extend(_called_functions(node))
  return False


def _called_functions(node: node_def_pb2.NodeDef) -> list[str]:
  """Returns the names of the functions that a node calls, if it does."""
  called = [node.op]
  for value in node.attr.values():
    called.extend(function.name for function in [value.func, *value.list.func] if function.name)
  return called


def _needs_feeds(op: ops.Operation) -> bool:
  """Whether an op depends on a placeholder. The default of one may not be what the program has fed."""
  seen = {op}
  to_visit = [op]
  while to_visit:
    visited = to_visit.pop()
    if visited.type in ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault"):
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
  # TensorFlow exports a saveable as the name of its iterator, and imports it as that op, which no saver takes.
  saveables = graph.get_collection_ref(ops.GraphKeys.SAVEABLE_OBJECTS)
  saveables[:] = [entry for entry in saveables if entry is not saveable.op.op] + [saveable]
  _list(graph, saveable)
  return scope


ops.register_proto_function(
    _NAME, proto_type=wrappers_pb2.StringValue, to_proto=_to_proto, from_proto=_from_proto)
