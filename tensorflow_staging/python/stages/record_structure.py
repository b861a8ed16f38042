# SPDX-License-Identifier: Apache-2.0
"""A user's features as one flat record of tensors, and back."""

from collections.abc import Sequence
from typing import Any

from tensorflow.python.framework import composite_tensor
from tensorflow.python.framework import ops
from tensorflow.python.framework import type_spec
from tensorflow.python.ops import handle_data_util
from tensorflow.python.util import nest

from tensorflow_staging.python.stages import graph_tensors


class RecordStructure:
  """Remembers how features were built, so that taken tensors can be built up the same way.

  A SparseTensor or RaggedTensor travels as its components; None is kept as None and travels not
  at all.

  Attributes:
    tensors: The record: the components of the features that are not None.
  """

  def __init__(self, argument: str, features: Any, graph: ops.Graph):
    """Takes features apart.

    Args:
      argument: What the features are called in messages.
      features: A tensor, SparseTensor, RaggedTensor or None, or any nesting of them.
      graph: The graph that every tensor must belong to.

    Raises:
      TypeError: If a leaf is no tensor.
      ValueError: If there is no tensor at all, a leaf is an eager tensor or belongs to another
        graph.
    """
    self._layout = nest.map_structure(_spec_of_composite, features)
    self._components = graph_tensors.components(argument, features, graph)
    self.tensors = [c for c in self._components if c is not None]
    if not self.tensors:
      raise ValueError(f"{argument} must hold at least one tensor, got {features!r}.")

  def relax(self, other: "RecordStructure") -> None:
    """Forgets the static shapes of composite tensors that do not hold for `other` too.

    Args:
      other: Another structure, whose records are to be packed by this one.

    Raises:
      TypeError: If the two have different kinds of containers or tensors.
      ValueError: If the two have a different nesting.
    """
    nest.assert_same_structure(self._layout, other._layout, expand_composites=True)
    self._layout = nest.map_structure(_common, self._layout, other._layout)

  def pack(self, taken: Sequence[ops.Tensor]) -> Any:
    """Builds the features up again from a taken record.

    Args:
      taken: As many tensors as `self.tensors`, of the same types and static shapes.

    Returns:
      A new structure of the same types; what was a list or a dict is a new, mutable one.
    """
    for source, target in zip(self.tensors, taken, strict=True):
      # What a resource or variant refers to is not part of a tensor's static shape.
      handle_data_util.copy_handle_data(source, target)
    rest = iter(taken)
    components = [None if c is None else next(rest) for c in self._components]
    return nest.pack_sequence_as(self._layout, components, expand_composites=True)


def _spec_of_composite(leaf: Any) -> Any:
  """What a composite tensor needs to be built up again, without its tensors."""
  return leaf._type_spec if isinstance(leaf, composite_tensor.CompositeTensor) else leaf


def _common(leaf: Any, other: Any) -> Any:
  """The spec that covers both leaves, where they are specs."""
  if isinstance(leaf, type_spec.TypeSpec):
    return leaf.most_specific_common_supertype([other])
  return leaf
