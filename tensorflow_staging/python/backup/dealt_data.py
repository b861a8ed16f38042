# SPDX-License-Identifier: Apache-2.0
"""The data of a `tf.distribute` strategy, dealt to its replicas so that the position in it can be saved.

A strategy deals the elements of one dataset by a `MultiDeviceIterator`: a thread fills a queue for each replica, and
tf.data can save neither the thread nor the queues. Here the dataset itself deals. An element of it has what one step
reads for all replicas, in the same order, so one iterator of tf.data is the position of all of them:

```
  element, element, element, …  ─▶  (element, element), (element, …), …    with two replicas
```

An element is carried by reference from there to here, whatever its type: as an Optional, of which a batch can be made.

Each worker of a `MultiWorkerMirroredStrategy` deals its own data. In the step, they ask each other whether any of them
has an element, as `tf.distribute` does; those without one go on with empty elements.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import Optional

from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.data.ops import optional_ops
from tensorflow.python.distribute import input_lib
from tensorflow.python.distribute import reduce_util
from tensorflow.python.framework import composite_tensor
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import errors
from tensorflow.python.framework import ops
from tensorflow.python.framework import type_spec
from tensorflow.python.ops import array_ops
from tensorflow.python.ops import cond
from tensorflow.python.ops import math_ops
from tensorflow.python.types import distribute as distribute_types

from tensorflow_staging.python.ahead import strategy_iterators


def of(data: Any) -> Any:
  """Returns data with the elements of `data`, whose position can be saved; `data` itself if it needs or can be none.

  Args:
    data: What `fit` iterates over: a dataset of tf.data or of a strategy.
  """
  is_dealt = isinstance(data, input_lib.DistributedDataset) and isinstance(
      data._strategy, strategy_iterators.READ_BY_PROCESS)
  return DealtDataset(data) if is_dealt else data


class DealtDataset:
  """Yields the elements that this process has of a `DistributedDataset` by iterators of tf.data."""

  def __init__(self, distributed: input_lib.DistributedDataset):
    # pylint: disable=protected-access
    self._distributed = distributed
    (self._worker, replicas), = distributed._input_workers._worker_device_pairs
    # Without empty elements, a step that lacks some finds the end of the data.
    with_empty = distributed._enable_get_next_as_optional
    self._asks_workers = with_empty and distributed._strategy.extended._in_multi_worker_mode()
    self._dataset = _dealt(distributed._cloned_datasets[0], len(replicas), with_empty)

  def __iter__(self) -> "DealtIterator":
    with ops.device(self._worker):
      iterator = iter(self._dataset)
    return DealtIterator(self._distributed._strategy, self._worker, self._asks_workers, iterator)  # pylint: disable=protected-access

  def __getattr__(self, name: str) -> Any:
    """Returns what else Keras asks of the data."""
    return getattr(self._distributed, name)


def _dealt(dataset: Any, replicas: int, with_empty: bool) -> Any:
  """Returns a dataset with `replicas` consecutive elements of a dataset in each of its own.

  Args:
    dataset: The dataset.
    replicas: How many.
    with_empty: Whether the last element has empty ones for those that are missing; otherwise, it is left out.
  """
  # pylint: disable=protected-access
  spec = dataset.element_spec

  def packed(*element: Any) -> Any:
    # A function of `map` gets the parts of a tuple, but not those of a named one.
    return optional_ops.Optional.from_value(element if type(spec) is tuple else element[0])._variant_tensor

  def unpacked(batch: Any) -> tuple[Any, ...]:
    return tuple(_element(batch, i, spec, with_empty) for i in range(replicas))

  return dataset.map(packed).batch(replicas, drop_remainder=not with_empty).map(unpacked)


def _element(batch: Any, index: int, spec: Any, may_lack: bool) -> Any:
  """Returns an element of a batch of Optionals, or an empty one if the batch may lack it."""

  def value() -> Any:
    return optional_ops._OptionalImpl(batch[index], spec).get_value()  # pylint: disable=protected-access

  if not may_lack or index == 0:
    return value()
  # As the strategy makes them.
  return cond.cond(index < array_ops.size(batch), value, lambda: input_lib._dummy_tensor_fn(spec), strict=True)  # pylint: disable=protected-access


class _OfWorker:
  """What an iterator of a strategy has for each worker, as `strategy_iterators` reads it."""

  def __init__(self, worker: str, owned: iterator_ops.OwnedIterator):
    self._worker = worker
    self._iterator = owned
    self._dataset = getattr(owned, "_dataset", None)


class DealtIterator(composite_tensor.CompositeTensor, distribute_types.DistributedIteratorInterface):
  """An iterator of a strategy that reads one iterator of tf.data.

  Attributes:
    owned: That iterator.
  """

  def __init__(self, strategy: Any, worker: str, asks_workers: bool, owned: iterator_ops.OwnedIterator):
    self.owned = owned
    self._strategy = strategy
    self._worker = worker
    self._asks_workers = asks_workers
    self._iterators = [_OfWorker(worker, owned)]

  def __iter__(self) -> Iterator[Any]:
    return self

  def __next__(self) -> Any:
    try:
      return self.get_next()
    except errors.OutOfRangeError as error:
      raise StopIteration from error

  def get_next(self) -> Any:
    """Returns the elements of the next step."""
    with ops.device(self._worker):
      if self._asks_workers:
        is_any, elements_if_any = self._ask()
        # The read of another element says that there is none.
        elements = cond.cond(is_any, elements_if_any, self.owned.get_next, strict=True)
      else:
        elements = self.owned.get_next()
    return self._of_replicas(elements)

  def get_next_as_optional(self) -> Any:
    """Returns an Optional with the elements of the next step, or without a value at the end of the data."""
    with ops.device(self._worker):
      is_any, elements_if_any = self._ask()
    return cond.cond(
        is_any, lambda: optional_ops.Optional.from_value(self._of_replicas(elements_if_any())),
        lambda: optional_ops.Optional.empty(self.element_spec), strict=True)

  def _ask(self) -> tuple[Any, Callable[[], tuple[Any, ...]]]:
    """Returns whether any worker has elements for the next step, and what returns those of this one."""
    elements = self.owned.get_next_as_optional()
    has_value = elements.has_value()
    if not self._asks_workers:
      return has_value, elements.get_value
    workers = self._strategy.reduce(
        reduce_util.ReduceOp.SUM, array_ops.reshape(math_ops.cast(has_value, dtypes.int64), [1]), axis=None)
    return array_ops.reshape(workers, []) > 0, lambda: cond.cond(
        has_value, elements.get_value, self._empty_elements, strict=True)

  def _empty_elements(self) -> tuple[Any, ...]:
    return tuple(map(input_lib._dummy_tensor_fn, self.owned.element_spec))  # pylint: disable=protected-access

  def _of_replicas(self, elements: Sequence[Any]) -> Any:
    return input_lib._create_per_replica(list(elements), self._strategy)  # pylint: disable=protected-access

  @property
  def element_spec(self) -> Any:
    return input_lib._create_distributed_tensor_spec(self._strategy, self.owned.element_spec[0])  # pylint: disable=protected-access

  @property
  def _type_spec(self) -> "DealtIteratorSpec":
    owned = iterator_ops.IteratorSpec(self.owned.element_spec)
    return DealtIteratorSpec(self._strategy, self._worker, self._asks_workers, owned)


class DealtIteratorSpec(type_spec.TypeSpec):
  """The type of a `DealtIterator` as an argument of a `tf.function`."""

  __slots__ = ["_strategy", "_worker", "_asks_workers", "_owned"]

  value_type = property(lambda self: DealtIterator)

  def __init__(self, strategy: Any, worker: str, asks_workers: bool, owned: iterator_ops.IteratorSpec):
    self._strategy = strategy
    self._worker = worker
    self._asks_workers = asks_workers
    self._owned = owned

  def _serialize(self) -> tuple[Any, ...]:
    return id(self._strategy), self._worker, self._asks_workers, self._owned

  def is_subtype_of(self, other: Any) -> bool:
    return self == other

  def most_specific_common_supertype(self, others: Sequence[Any]) -> Optional["DealtIteratorSpec"]:
    return self if all(self == other for other in others) else None

  def _without_tensor_names(self) -> "DealtIteratorSpec":
    # The strategy is known by its id, of which no copy can be made.
    return self

  @property
  def _component_specs(self) -> list[iterator_ops.IteratorSpec]:
    return [self._owned]

  def _to_components(self, value: DealtIterator) -> list[iterator_ops.OwnedIterator]:
    return [value.owned]

  def _from_components(self, components: list[iterator_ops.OwnedIterator]) -> DealtIterator:
    return DealtIterator(self._strategy, self._worker, self._asks_workers, components[0])
