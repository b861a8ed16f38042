# SPDX-License-Identifier: Apache-2.0
"""Converts a user's features to a flat record of tensors, and a taken record back to features."""

from collections.abc import Sequence
from typing import Any
from typing import Optional
from typing import Union

from tensorflow.python.framework import composite_tensor
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib
from tensorflow.python.framework import type_spec
from tensorflow.python.ops import handle_data_util
from tensorflow.python.util import nest

from tensorflow_staging.python.stages import graph_tensors
from tensorflow_staging.python.stages import python_values

_ALLOWED = "a tf.Tensor, tf.SparseTensor or tf.RaggedTensor, a NumPy array, or a Python number or string"


class RecordStructure:
  """The structure of features, which turns taken tensors back into features of that structure.

  The record carries the components of a SparseTensor or RaggedTensor. It does not carry a None,
  which the structure restores.

  Attributes:
    record: All components of the features except None: tensors, and constants that the graph does
      not hold yet. Empty if the features hold nothing but None.
  """

  def __init__(self, argument: str, features: Any, graph: ops.Graph):
    """Splits features into their structure and their tensors.

    Args:
      argument: The label of the features in error messages.
      features: A tensor, SparseTensor, RaggedTensor, NumPy array, Python number or string, or
        None, or any nesting of them.
      graph: The graph that every tensor must belong to.

    Raises:
      TypeError: If a leaf is none of these, or TensorFlow has no type for it.
      ValueError: If a leaf is an eager tensor, belongs to another graph or cannot be a constant of a
        graph.
    """
    try:
      self._layout = nest.map_structure(_spec_of_composite, features)
    except TypeError as error:
      raise TypeError(
          f"{argument} must be nested in lists, tuples, and dicts whose keys can be sorted, got {features!r}:"
          f" {error}.") from error
    self._components = [
        _component(label, component, graph)
        for label, component in graph_tensors.labelled_components(argument, features)
    ]
    self.record = [c for c in self._components if c is not None]

  def relax(self, other: "RecordStructure") -> None:
    """Generalizes the static shapes of composite tensors until they also hold for `other`.

    Args:
      other: Another structure, whose records this one will pack.

    Raises:
      TypeError: If the two structures differ in the types of containers or tensors.
      ValueError: If the two structures differ in nesting.
    """
    nest.assert_same_structure(self._layout, other._layout, expand_composites=True)
    self._layout = nest.map_structure(_common, self._layout, other._layout)

  def pack(self, taken: Sequence[tensor_lib.Tensor]) -> Any:
    """Rebuilds the features from a taken record.

    Args:
      taken: As many tensors as `self.record` has components, of the same types and static shapes.

    Returns:
      The features in new containers of the same types. Lists and dicts are mutable.
    """
    for original, taken_tensor in zip(self.record, taken):
      # The static shape of a resource or variant does not describe the value that it refers to.
      handle_data_util.copy_handle_data(original, taken_tensor)
    remaining = iter(taken)
    components = [None if c is None else next(remaining) for c in self._components]
    return nest.pack_sequence_as(self._layout, components, expand_composites=True)


def _component(
    label: str, component: Any,
    graph: ops.Graph) -> Optional[Union[tensor_lib.Tensor, python_values.PythonValue]]:
  """Checks a component, and wraps the value of a constant."""
  if component is None:
    return None
  if python_values.is_python_value(component):
    return python_values.PythonValue(label, component)
  graph_tensors.check(label, component, graph, _ALLOWED, "a variable")
  return component


def _spec_of_composite(leaf: Any) -> Any:
  """Returns the spec from which a composite tensor can be rebuilt, or any other leaf itself."""
  return leaf._type_spec if isinstance(leaf, composite_tensor.CompositeTensor) else leaf


def _common(leaf: Any, other: Any) -> Any:
  """Returns the most specific spec that covers both leaves, or the first leaf if it is not a spec."""
  if isinstance(leaf, type_spec.TypeSpec):
    return leaf.most_specific_common_supertype([other])
  return leaf
