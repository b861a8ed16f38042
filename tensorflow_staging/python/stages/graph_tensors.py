# SPDX-License-Identifier: Apache-2.0
"""Flattens a user's structure into tensors of one graph, and labels its entries in error messages."""

from typing import Any

from tensorflow.python.framework import ops
from tensorflow.python.util import nest


def components(argument: str, structure: Any, graph: ops.Graph) -> list[ops.Tensor | None]:
  """Flattens a structure into its tensors, in the order of `tf.nest.flatten`.

  Args:
    argument: The label of the structure in error messages.
    structure: A tensor, SparseTensor, RaggedTensor or None, or any nesting of them.
    graph: The graph that every tensor must belong to.

  Returns:
    The components: one for a tensor, several for a SparseTensor or RaggedTensor, None for None.

  Raises:
    TypeError: If a leaf is not a tensor.
    ValueError: If a leaf is an eager tensor or belongs to another graph.
  """
  entries = nest.flatten_with_tuple_paths(structure, expand_composites=True)
  for path, component in entries:
    if component is not None:
      _check(argument + "".join(f"[{key!r}]" for key in path), component, graph)
  return [component for _, component in entries]


def _check(label: str, component: Any, graph: ops.Graph) -> None:
  if isinstance(component, ops.EagerTensor):
    raise ValueError(
        f"{label} must be a tensor of a graph, got an eager tensor: its value is fixed, so a stage"
        " would have nothing to compute. Build the input inside the graph.")
  if not isinstance(component, ops.Tensor):
    raise TypeError(
        f"{label} must be a tf.Tensor, tf.SparseTensor or tf.RaggedTensor, got"
        f" {component!r} of type {type(component).__name__}. Use tf.convert_to_tensor(...) to"
        " convert a variable or a NumPy array.")
  if component.graph is not graph:
    raise ValueError(
        f"{label} must belong to the default graph, but {component.name!r} belongs to another"
        " graph. Call this function inside `with graph.as_default():`, where `graph` is the graph"
        " of the tensors.")
