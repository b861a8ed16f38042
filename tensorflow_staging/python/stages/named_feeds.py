# SPDX-License-Identifier: Apache-2.0
"""Checks the `feed_dict` of a stage and maps the names of fed tensors to the names of their values."""

from collections.abc import Mapping
from typing import Any
from typing import Optional

from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib

from tensorflow_staging.python.stages import graph_tensors


def named_feeds(feed_dict: Optional[Mapping[Any, Any]], graph: ops.Graph) -> dict[str, str]:
  """Checks a stage's `feed_dict` and maps it to names.

  Args:
    feed_dict: Maps each placeholder or other tensor to feed to the tensor that yields its value.
      Keys and values may also be SparseTensors, RaggedTensors or nested structures, if each value
      matches its key. None means no feeds.
    graph: The graph that all tensors must belong to.

  Returns:
    A dict from the name of each fed tensor to the name of the tensor that yields its value.

  Raises:
    TypeError: If `feed_dict` is not a mapping, or a key or value holds anything but tensors.
    ValueError: If a tensor cannot be fed or belongs to another graph, or a value does not match
      its key in the number of tensors, in type or in static shape.
  """
  if feed_dict is None:
    return {}
  if not isinstance(feed_dict, Mapping):
    raise TypeError(
        "feed_dict must be a dict from placeholders or tensors to tensors, got"
        f" {feed_dict!r} of type {type(feed_dict).__name__}. To feed a list of placeholders from"
        " Python, use feed_list= together with feed_generator=.")
  names = {}
  for key, value in feed_dict.items():
    label = f"feed_dict[{getattr(key, 'name', key)!r}]"
    fed_list = fed_tensors(f"the key of {label}", key, graph)
    value_list = _tensors(label, value, graph)
    if len(fed_list) != len(value_list):
      raise ValueError(
          f"{label} must hold as many tensors as its key, {len(fed_list)}, got {len(value_list)}.")
    for fed, fed_value in zip(fed_list, value_list):
      _check_feed(label, fed, fed_value)
      names[fed.name] = fed_value.name
  return names


def fed_tensors(label: str, structure: Any, graph: ops.Graph) -> list[tensor_lib.Tensor]:
  """Flattens a structure into tensors, and checks that each of them can be fed.

  Args:
    label: The label of the structure in error messages.
    structure: A tensor, SparseTensor or RaggedTensor, or any nesting of them.
    graph: The graph that every tensor must belong to.

  Returns:
    The tensors, in the order of `tf.nest.flatten`.

  Raises:
    TypeError: If `structure` holds anything but tensors, or is empty.
    ValueError: If a tensor cannot be fed or belongs to another graph.
  """
  tensors = _tensors(label, structure, graph)
  for tensor in tensors:
    if not graph.is_feedable(tensor):
      raise ValueError(f"{label}: the tensor {tensor.name!r} is marked as not feedable.")
  return tensors


def _tensors(label: str, structure: Any, graph: ops.Graph) -> list[tensor_lib.Tensor]:
  tensors = graph_tensors.components(label, structure, graph)
  if not tensors or any(tensor is None for tensor in tensors):
    raise TypeError(f"{label} must hold tensors only, got {structure!r}.")
  return tensors


def _check_feed(label: str, fed: tensor_lib.Tensor, value: tensor_lib.Tensor) -> None:
  if fed.dtype.base_dtype != value.dtype.base_dtype:
    raise ValueError(
        f"{label} must have type {fed.dtype.base_dtype.name}, the type of {fed.name!r}, but"
        f" {value.name!r} has type {value.dtype.base_dtype.name}.")
  if not fed.shape.is_compatible_with(value.shape):
    raise ValueError(
        f"{label} must have a shape compatible with {fed.shape}, the shape of {fed.name!r}, but"
        f" {value.name!r} has shape {value.shape}.")
