# SPDX-License-Identifier: Apache-2.0
"""The `feed_dict` of a stage: which tensor's value is fed to which, by name."""

from collections.abc import Mapping
from typing import Any

from tensorflow.python.framework import ops

from tensorflow_staging.python.stages import graph_tensors


def named_feeds(feed_dict: Mapping[Any, Any] | None, graph: ops.Graph) -> dict[str, str]:
  """Checks a stage's `feed_dict` and maps it to names.

  Args:
    feed_dict: From what is fed, a placeholder or another tensor, to the tensor that yields the
      value. Both may be SparseTensors or RaggedTensors, or nested, if they match. None is empty.
    graph: The graph that all of them must belong to.

  Returns:
    From the name of each fed tensor to the name of the tensor that yields its value.

  Raises:
    TypeError: If `feed_dict` is no mapping, or a key or value holds anything but tensors.
    ValueError: If a tensor cannot be fed or belongs to another graph, or a value does not match
      its key in the number of tensors, in type or in static shape.
  """
  if feed_dict is None:
    return {}
  if not isinstance(feed_dict, Mapping):
    raise TypeError(
        "feed_dict must be a dict from placeholders or tensors to tensors, got"
        f" {feed_dict!r} of type {type(feed_dict).__name__}. A list of placeholders is given as"
        " feed_list=, together with feed_generator=.")
  names = {}
  for key, value in feed_dict.items():
    place = f"feed_dict[{getattr(key, 'name', key)!r}]"
    fed = fed_tensors(f"the key of {place}", key, graph)
    sources = _tensors(place, value, graph)
    if len(fed) != len(sources):
      raise ValueError(
          f"{place} must match its key: {len(fed)} tensors are to be fed, {len(sources)} given.")
    for target, source in zip(fed, sources, strict=True):
      _check_feed(place, target, source)
      names[target.name] = source.name
  return names


def fed_tensors(place: str, structure: Any, graph: ops.Graph) -> list[ops.Tensor]:
  """Checks what is to be fed.

  Args:
    place: What it is called in messages.
    structure: A tensor, SparseTensor or RaggedTensor, or any nesting of them.
    graph: The graph that it must belong to.

  Returns:
    Its tensors, in the order of `tf.nest.flatten`.

  Raises:
    TypeError: If it holds anything but tensors, or nothing.
    ValueError: If a tensor cannot be fed or belongs to another graph.
  """
  tensors = _tensors(place, structure, graph)
  for tensor in tensors:
    if not graph.is_feedable(tensor):
      raise ValueError(f"{place}: the tensor {tensor.name!r} is marked as not feedable.")
  return tensors


def _tensors(place: str, structure: Any, graph: ops.Graph) -> list[ops.Tensor]:
  tensors = graph_tensors.components(place, structure, graph)
  if not tensors or any(tensor is None for tensor in tensors):
    raise TypeError(f"{place} must hold tensors only, got {structure!r}.")
  return tensors


def _check_feed(place: str, target: ops.Tensor, source: ops.Tensor) -> None:
  if target.dtype.base_dtype != source.dtype.base_dtype:
    raise ValueError(
        f"{place} must yield values of type {target.dtype.base_dtype.name}, as"
        f" {target.name!r} has, but {source.name!r} has type {source.dtype.base_dtype.name}.")
  if not target.shape.is_compatible_with(source.shape):
    raise ValueError(
        f"{place} must yield values of a shape compatible with {target.shape}, as"
        f" {target.name!r} has, but {source.name!r} has shape {source.shape}.")
