# SPDX-License-Identifier: Apache-2.0
"""The iterators of `tf.distribute` strategies: each reads one iterator of tf.data for each replica.

These can be read ahead, all those of a step together, as the iterators of any step that has several.
"""

from collections.abc import Iterable
from typing import Any
from typing import NamedTuple
from typing import Optional

from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.distribute import collective_all_reduce_strategy
from tensorflow.python.distribute import mirrored_strategy
from tensorflow.python.distribute import one_device_strategy
from tensorflow.python.distribute import parameter_server_strategy_v2
from tensorflow.python.distribute.coordinator import values
from tensorflow.python.framework import device
from tensorflow.python.framework import ops
from tensorflow.python.types import distribute as distribute_types

from tensorflow_staging.python.ahead import host_iterators

# Those of which each process reads its own data. The last one is MultiWorkerMirroredStrategy.
READ_BY_PROCESS = (
    one_device_strategy.OneDeviceStrategy, mirrored_strategy.MirroredStrategy,
    collective_all_reduce_strategy.CollectiveAllReduceStrategy)

_ON_SERVERS = "a ParameterServerStrategy runs its steps in the processes of its workers, where no stage runs"
_OTHER_STRATEGY = (
    "its iterator belongs to a tf.distribute strategy other than OneDeviceStrategy, MirroredStrategy and"
    " MultiWorkerMirroredStrategy")

# The attribute of an iterator that has the `_Share` of what it yields.
_SHARE = "_staging_share"


class _Share(NamedTuple):
  """What an iterator of one replica yields: of every `replicas` elements of a dataset, the one at `index`.

  `queue` is the handle of the `MultiDeviceIterator` that deals them; None if there is none.
  """

  dataset: Any
  queue: Any
  index: int
  replicas: int


def owned_iterators(value: Any) -> Optional[list[iterator_ops.OwnedIterator]]:
  """Returns the iterators of tf.data that one `next()` of an iterator reads, in the order of the replicas.

  Args:
    value: An iterator of tf.data or of a strategy.

  Returns:
    The iterator itself, or one for each replica of a strategy that is in this process; None if `why_not_read` says why
    not.
  """
  if isinstance(value, iterator_ops.OwnedIterator):
    return [value]
  if why_not_read(value):
    return None
  owned = []
  for of_worker in value._iterators:  # pylint: disable=protected-access
    owned.extend(_of_worker(of_worker))
  return owned


def why_not_read(value: Any) -> str:
  """Returns why this process cannot read an iterator ahead, as the end of a sentence; an empty string if it can."""
  if isinstance(value, iterator_ops.OwnedIterator):
    return ""
  strategy = getattr(value, "_strategy", None)
  if isinstance(value, values.PerWorkerValues) or isinstance(
      strategy, parameter_server_strategy_v2.ParameterServerStrategyV2):
    return _ON_SERVERS
  return "" if is_distributed(value) and isinstance(strategy, READ_BY_PROCESS) else _OTHER_STRATEGY


def _of_worker(of_worker: Any) -> list[iterator_ops.OwnedIterator]:
  """Returns the iterators of the devices of a worker."""
  # pylint: disable=protected-access
  iterator = of_worker._iterator
  queue = getattr(iterator, "_multi_device_iterator_resource", None)
  several = [iterator] if queue is None else iterator._device_iterators
  for index, of_device in enumerate(several):
    if not is_dealt(of_device):
      # It copies what this dataset makes, and does not own it.
      setattr(of_device, _SHARE, _Share(of_worker._dataset, queue, index, len(several)))
  return several


def is_dealt(iterator: iterator_ops.OwnedIterator) -> bool:
  """Returns whether an iterator is that of one replica of a strategy."""
  return hasattr(iterator, _SHARE)


def queue_of(iterator: iterator_ops.OwnedIterator) -> Optional[ops.EagerTensor]:
  """Returns the handle of what deals elements to an iterator of one replica; None for other iterators."""
  share = getattr(iterator, _SHARE, None)
  return share and share.queue


def host_of(iterators: Iterable[iterator_ops.OwnedIterator]) -> Optional[str]:
  """Returns the CPU of the process that has the iterators of replicas; None if none of them is that of a replica."""
  dealt = next(filter(is_dealt, iterators), None)
  if dealt is None:
    return None
  of_iterator = device.DeviceSpec.from_string(dealt._iterator_resource.device)  # pylint: disable=protected-access
  return of_iterator.replace(device_type="CPU", device_index=0).to_string()


def are_on_host(value: Any) -> bool:
  """Returns whether the iterators that `owned_iterators` returns yield their elements on the host."""
  return not is_distributed(value) or all(map(host_iterators.is_on_host, value._iterators))  # pylint: disable=protected-access


def is_distributed(value: Any) -> bool:
  """Returns whether a value is an iterator of a strategy, or has one for each worker of a ClusterCoordinator."""
  return isinstance(value, (distribute_types.DistributedIteratorInterface, values.PerWorkerValues))


def datasets_of(iterator: iterator_ops.OwnedIterator) -> list[Any]:
  """Returns the datasets that make the elements of an iterator."""
  share = getattr(iterator, _SHARE, None)
  datasets = [getattr(iterator, "_dataset", None), share and share.dataset]
  return [dataset for dataset in datasets if dataset is not None]


def length_of(iterator: iterator_ops.OwnedIterator) -> Optional[int]:
  """Returns how many elements a new iterator has, or one of the numbers below 0 with which tf.data tells more.

  None stands for an iterator of which no dataset is known.
  """
  datasets = datasets_of(iterator)
  if not datasets:
    return None
  length = int(datasets[-1].cardinality())
  share = getattr(iterator, _SHARE, None)
  if share is None or length < 0:
    return length
  return len(range(share.index, length, share.replicas))


def has_one_element(iterator: iterator_ops.OwnedIterator) -> bool:
  """Returns whether an iterator has at most one element, as far as that is known."""
  return length_of(iterator) in (0, 1)
