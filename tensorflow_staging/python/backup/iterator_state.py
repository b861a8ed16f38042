# SPDX-License-Identifier: Apache-2.0
"""The state of an iterator of tf.data, apart from the iterator."""

from typing import Any

from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.framework import errors
from tensorflow.python.trackable import base

from tensorflow_staging.python import api_name
from tensorflow_staging.python.ahead import strategy_iterators
from tensorflow_staging.python.backup import dealt_data

_NAME = f"{api_name.API}.BackupAndRestore"
_OF_A_STRATEGY = (
    f"{_NAME} cannot save the position in data that a tf.distribute strategy deals, but for a dataset that fit gets"
    " under a MirroredStrategy, a MultiWorkerMirroredStrategy or a OneDeviceStrategy.")
_NOT_OF_TF_DATA = (
    f"{_NAME} cannot save the position in data that tf.data does not read. Keras's backend must be TensorFlow.")
_NOT_SAVED = (
    f"{_NAME} cannot save the position in the data of this fit. Give fit a tf.data.Dataset without Python functions and"
    " without random ops in its functions, or NumPy arrays; Dataset.shuffle is fine. The reason: ")
_OTHER_DATA = (
    f"{_NAME} cannot give the data of this fit its position. If the backup was written with other data, give fit the"
    " same data, or delete the backup. The reason: ")


class IteratorState(base.Trackable):
  """What a checkpoint has of an iterator: its position, and the elements that a stage has read ahead."""

  def __init__(self, iterator: Any):
    """Takes the state of an iterator as it is now.

    Args:
      iterator: An iterator of `fit`.

    Raises:
      ValueError: If it cannot be saved.
    """
    try:
      self._tensors = _owned(iterator)._serialize_to_tensors()
    except errors.OpError as error:
      raise ValueError(f"{_NOT_SAVED}{error.message}") from error

  def give_to(self, iterator: Any) -> None:
    """Restores an iterator of the same data to this state, which includes how often a shuffled dataset has begun.

    Args:
      iterator: The iterator.

    Raises:
      ValueError: If it reads other data.
    """
    try:
      _owned(iterator)._restore_from_tensors(self._tensors)
    except errors.OpError as error:
      raise ValueError(f"{_OTHER_DATA}{error.message}") from error

  def _serialize_to_tensors(self) -> dict[str, Any]:
    return self._tensors

  def _restore_from_tensors(self, restored_tensors: dict[str, Any]) -> None:
    self._tensors = restored_tensors


def _owned(iterator: Any) -> Any:
  """Returns the iterator of tf.data that an iterator of `fit` is."""
  if isinstance(iterator, dealt_data.DealtIterator):
    return iterator.owned
  # One of another strategy reads queues, whose position tf.data cannot save.
  if not isinstance(iterator, iterator_ops.OwnedIterator):
    raise ValueError(_OF_A_STRATEGY if strategy_iterators.is_distributed(iterator) else _NOT_OF_TF_DATA)
  return iterator
