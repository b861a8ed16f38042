# SPDX-License-Identifier: Apache-2.0
"""Saves the position of an iterator, and keeps a restored position."""

from collections.abc import Sequence

from tensorflow.python.data.ops import options as options_lib
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops
from tensorflow.python.ops import control_flow_ops
from tensorflow.python.ops import gen_dataset_ops
from tensorflow.python.ops import gen_resource_variable_ops
from tensorflow.python.training import saver as saver_lib

from tensorflow_staging.python import vocabulary

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

  def __init__(self, handle: ops.Tensor, policy: options_lib.ExternalStatePolicy):
    """Creates the ops that save the position and set it again.

    Args:
      handle: Scalar; the handle of the iterator.
      policy: What happens if a dataset depends on state that cannot be saved.
    """
    with ops.colocate_with(handle), ops.control_dependencies(None):
      self.position = gen_dataset_ops.serialize_iterator(handle, external_state_policy=policy.value)
      self._held = gen_resource_variable_ops.var_handle_op(
          dtype=dtypes.variant, shape=[None], shared_name=f"staging/held/{handle.op.name}")
      self.is_held = gen_resource_variable_ops.var_is_initialized_op(self._held)
      self.set_held = gen_dataset_ops.deserialize_iterator(
          handle, gen_resource_variable_ops.read_variable_op(self._held, dtypes.variant))
      self.release = gen_resource_variable_ops.destroy_resource_op(self._held)
    specs = [
        saver_lib.BaseSaverBuilder.SaveSpec(self.position, "", handle.op.name + "_STATE", device=handle.device)
    ]
    super().__init__(handle, specs, handle.op.name)
    setattr(handle.graph, _SAVEABLES, [*saveables_of(handle.graph), self])

  def restore(self, restored_tensors: list[ops.Tensor], restored_shapes: list) -> ops.Operation:
    """Returns the op that holds a position and, if the iterator can be initialised now, also sets it."""
    del restored_shapes
    position, = restored_tensors
    with ops.colocate_with(self.op):
      restored = [gen_resource_variable_ops.assign_variable_op(self._held, position)]
      if self.is_set_at_once():
        with ops.control_dependencies(self.initializers()):
          restored.append(gen_dataset_ops.deserialize_iterator(self.op, position))
      return control_flow_ops.group(*restored)

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


def saveables_of(graph: ops.Graph) -> Sequence[IteratorSaveable]:
  """Returns the saveables that were created in a graph."""
  return getattr(graph, _SAVEABLES, ())


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
