# SPDX-License-Identifier: Apache-2.0
"""Flattens a user's structure into tensors of one graph, and labels its entries in error messages."""

from typing import Any
from typing import Optional

from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib
from tensorflow.python.util import nest

_TENSORS = "a tf.Tensor, tf.SparseTensor or tf.RaggedTensor"


def components(argument: str, structure: Any, graph: ops.Graph) -> list[Optional[tensor_lib.Tensor]]:
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
  entries = labelled_components(argument, structure)
  for label, component in entries:
    if component is not None:
      check(label, component, graph, _TENSORS, "a variable or a NumPy array")
  return [component for _, component in entries]


def labelled_components(argument: str, structure: Any) -> list[tuple[str, Any]]:
  """Flattens a structure into its components, each with its label in error messages.

  Args:
    argument: The label of the structure.
    structure: Any nesting of any leaves.

  Returns:
    The components, in the order of `tf.nest.flatten`, with composite tensors expanded.
  """
  entries = nest.flatten_with_tuple_paths(structure, expand_composites=True)
  return [(argument + "".join(f"[{key!r}]" for key in path), component) for path, component in entries]


def check(
    label: str, component: Any, graph: ops.Graph, allowed: str, convertible: str) -> None:
  """Checks that a component is a tensor of a graph.

  Args:
    label: The label of the component in error messages.
    component: The component.
    graph: The graph that it must belong to.
    allowed: The allowed types, for the error message.
    convertible: The types that the user has to convert, for the error message.

  Raises:
    TypeError: If `component` is not a tensor.
    ValueError: If `component` is an eager tensor or belongs to another graph.
  """
  if isinstance(component, ops.EagerTensor):
    raise ValueError(
        f"{label} must be a tensor of a graph, got an eager tensor: its value is fixed, so a stage"
        " would have nothing to compute. Build the input inside the graph.")
  if not isinstance(component, tensor_lib.Tensor):
    advice = (
        "Use what its get_next() returns."
        if hasattr(component, "get_next") else f"Use tf.convert_to_tensor(...) to convert {convertible}.")
    raise TypeError(
        f"{label} must be {allowed}, got {component!r} of type {type(component).__name__}. {advice}")
  if component.graph is not graph:
    raise ValueError(
        f"{label} must belong to the default graph, but {component.name!r} belongs to another"
        " graph. Call this function inside `with graph.as_default():`, where `graph` is the graph"
        " of the tensors.")
