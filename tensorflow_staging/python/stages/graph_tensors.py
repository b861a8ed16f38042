# SPDX-License-Identifier: Apache-2.0
"""Taking a user's structure apart into tensors of one graph, and naming its places in messages."""

from typing import Any

from tensorflow.python.framework import ops
from tensorflow.python.util import nest


def components(argument: str, structure: Any, graph: ops.Graph) -> list[ops.Tensor | None]:
  """The tensors of a structure, in the order of `tf.nest.flatten`.

  Args:
    argument: What the structure is called in messages.
    structure: A tensor, SparseTensor, RaggedTensor or None, or any nesting of them.
    graph: The graph that every tensor must belong to.

  Returns:
    The components: one for a tensor, several for a SparseTensor or RaggedTensor, None for None.

  Raises:
    TypeError: If a leaf is no tensor.
    ValueError: If a leaf is an eager tensor or belongs to another graph.
  """
  entries = nest.flatten_with_tuple_paths(structure, expand_composites=True)
  for path, component in entries:
    if component is not None:
      _check(argument + "".join(f"[{step!r}]" for step in path), component, graph)
  return [component for _, component in entries]


def _check(place: str, component: Any, graph: ops.Graph) -> None:
  if isinstance(component, ops.EagerTensor):
    raise ValueError(
        f"{place} must be a tensor of a graph, got an eager tensor: its value is fixed, so there"
        " is nothing to run ahead. Build the input inside the graph.")
  if not isinstance(component, ops.Tensor):
    raise TypeError(
        f"{place} must be a tf.Tensor, tf.SparseTensor or tf.RaggedTensor, got"
        f" {component!r} of type {type(component).__name__}. tf.convert_to_tensor(...) makes a"
        " tensor of a variable or of a NumPy array.")
  if component.graph is not graph:
    raise ValueError(
        f"{place} must belong to the default graph, but {component.name!r} belongs to another"
        " one. Call this function inside `with graph.as_default():` of the tensors' graph.")
