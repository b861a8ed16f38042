# SPDX-License-Identifier: Apache-2.0
"""The iterators of `tf.distribute.OneDeviceStrategy`: each reads one iterator of tf.data, which can be read ahead."""

from typing import Any
from typing import Optional

from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.data.ops import multi_device_iterator_ops
from tensorflow.python.distribute import one_device_strategy
from tensorflow.python.distribute.coordinator import values
from tensorflow.python.framework import device
from tensorflow.python.types import distribute as distribute_types


def owned_iterator(value: Any) -> Optional[iterator_ops.OwnedIterator]:
  """Returns the iterator of tf.data that an iterator is, or that one on the CPU of a OneDeviceStrategy reads."""
  if isinstance(value, iterator_ops.OwnedIterator):
    return value
  if not is_distributed(value) or not isinstance(
      getattr(value, "_strategy", None), one_device_strategy.OneDeviceStrategy):
    return None
  of_worker, = value._iterators  # pylint: disable=protected-access
  if any(device.DeviceSpec.from_string(name).device_type != "CPU" for name in of_worker._devices):  # pylint: disable=protected-access
    return None
  iterator = of_worker._iterator  # pylint: disable=protected-access
  if isinstance(iterator, multi_device_iterator_ops.OwnedMultiDeviceIterator):
    iterator, = iterator._device_iterators  # pylint: disable=protected-access
    # It copies what this dataset makes, and does not own it.
    iterator._staging_original = of_worker._dataset  # pylint: disable=protected-access
  return iterator


def is_distributed(value: Any) -> bool:
  """Returns whether a value is an iterator of a strategy, or has one for each worker of a ClusterCoordinator."""
  return isinstance(value, (distribute_types.DistributedIteratorInterface, values.PerWorkerValues))


def datasets_of(iterator: iterator_ops.OwnedIterator) -> list[Any]:
  """Returns the datasets that make the elements of an iterator."""
  datasets = [getattr(iterator, name, None) for name in ("_dataset", "_staging_original")]
  return [dataset for dataset in datasets if dataset is not None]


def has_one_element(iterator: iterator_ops.OwnedIterator) -> bool:
  """Returns whether an iterator has at most one element, as far as that is known."""
  datasets = datasets_of(iterator)
  return bool(datasets) and datasets[-1].cardinality().numpy() in (0, 1)
