# SPDX-License-Identifier: Apache-2.0
"""Moves the iterators of a strategy's GPUs to the host, where the part ahead reads them.

A strategy deals the elements of one dataset to its replicas: a `MultiDeviceIterator` of the host has a queue for each
replica, and an iterator on each GPU reads its queue and copies what it gets. Strings cannot be copied to a GPU, and
what runs ahead would have to copy all else back. So iterators on the host read the queues in their place, as with the
option `experimental_fetch_to_device=False` of `tf.distribute.InputOptions`. The elements are dealt as before.

That must come before the first read: an iterator on a GPU holds elements which it has taken out of its queue.
"""

import functools
from collections.abc import Callable
from typing import Any
from typing import Optional

from tensorflow.python.data.ops import multi_device_iterator_ops
from tensorflow.python.distribute import input_lib
from tensorflow.python.framework import device
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops

# The attribute of a `OwnedMultiDeviceIterator` that something has read, or may have.
_WAS_READ = "_staging_was_read"


def watch() -> None:
  """From here on notes which iterators are read."""
  iterator, spec = multi_device_iterator_ops.OwnedMultiDeviceIterator, multi_device_iterator_ops.MultiDeviceIteratorSpec
  # The last one is called when a tf.function gets an iterator.
  for owner, name, position in (
      (iterator, "get_next", 0), (iterator, "get_next_as_optional", 0), (spec, "_to_components", 1)):
    setattr(owner, name, _noting(getattr(owner, name), position))


def _noting(method: Callable[..., Any], position: int) -> Callable[..., Any]:
  """Returns a method that notes a read of the iterator which is its argument at `position`."""

  @functools.wraps(method)
  def noting(*args: Any, **kwargs: Any) -> Any:
    setattr(args[position], _WAS_READ, True)
    return method(*args, **kwargs)

  return noting


def move(value: Any) -> Optional[Callable[[], None]]:
  """Moves the iterators of a strategy to the host.

  Args:
    value: An iterator of a strategy whose replicas are all in this process.

  Returns:
    What takes the move back, as long as nothing has read the iterators. None if they cannot be moved, because something
    has read them.
  """
  # pylint: disable=protected-access
  of_workers = [of_worker for of_worker in value._iterators if not is_on_host(of_worker)]
  if any(hasattr(of_worker._iterator, _WAS_READ) for of_worker in of_workers):
    return None
  before = [(value, "_input_workers", value._input_workers)]
  for of_worker in of_workers:
    iterator = of_worker._iterator
    before += [(of_worker, "_devices", of_worker._devices), (iterator, "_devices", iterator._devices),
               (iterator, "_device_iterators", iterator._device_iterators)]
    host = iterator._source_device
    iterator._device_iterators = _on_host(iterator, host)
    of_worker._devices = iterator._devices = (host,) * len(iterator._device_iterators)
  value._input_workers = input_lib.InputWorkers(
      [(of_worker._worker, of_worker._devices) for of_worker in value._iterators])

  def take_back() -> None:
    for owner, name, old in before:
      setattr(owner, name, old)
    for of_worker in of_workers:
      # The trace of the step was no read.
      of_worker._iterator.__dict__.pop(_WAS_READ, None)

  return take_back


def is_on_host(of_worker: Any) -> bool:
  """Returns whether the iterator of a worker of a strategy yields its elements on the host."""
  # pylint: disable=protected-access
  iterator = of_worker._iterator
  several = isinstance(iterator, multi_device_iterator_ops.OwnedMultiDeviceIterator)
  devices = iterator._devices if several else [of_worker._worker]
  return all(device.DeviceSpec.from_string(name).device_type == "CPU" for name in devices)


def _on_host(iterator: Any, host: str) -> list[Any]:
  """Returns iterators on the host that read the queues of a `OwnedMultiDeviceIterator`."""
  # pylint: disable=protected-access
  made = []
  for index, of_device in enumerate(iterator._device_iterators):
    incarnation = _incarnation_of(of_device._dataset)
    with ops.device(host):
      queue = multi_device_iterator_ops._PerDeviceGenerator(
          index, iterator._multi_device_iterator_resource, incarnation, ops.convert_to_tensor(host),
          iterator._element_spec, iterator_is_anonymous=True)
      made.append(iter(queue))
  return made


def _incarnation_of(dataset: Any) -> ops.EagerTensor:
  """Returns the number by which a queue knows its readers, which the dataset of such a reader has."""
  to_visit = [dataset]
  while to_visit:
    at = to_visit.pop()
    for argument in getattr(at, "_next_captured_args", ()):
      if argument.dtype == dtypes.int64:
        return argument
    to_visit.extend(at._inputs())  # pylint: disable=protected-access
  raise ValueError(f"{dataset!r} reads no queue of a MultiDeviceIterator.")


# This module is imported with TensorFlow.
watch()
