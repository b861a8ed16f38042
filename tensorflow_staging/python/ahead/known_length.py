# SPDX-License-Identifier: Apache-2.0
"""How many elements the iterator of a `predict` has left, as far as its dataset or Keras knows."""

from typing import Any
from typing import Optional

from tensorflow.python.data.ops import dataset_ops

from tensorflow_staging.python.ahead import keras_frames
from tensorflow_staging.python.ahead import strategy_iterators

# The attribute of an iterator that has how many elements are left.
_LEFT = "_staging_elements_left"


def take(iterator: Any, most: int) -> Optional[int]:
  """Counts the elements that the next steps read, which nothing else reads from the iterator.

  Args:
    iterator: The iterator.
    most: How many steps want an element.

  Returns:
    How many of them get one; None if that is not known.
  """
  left = getattr(iterator, _LEFT, None)
  if left is None:
    left = _length(iterator)
  if left == dataset_ops.INFINITE:
    taken = most
  elif left == dataset_ops.UNKNOWN:
    taken = None
  else:
    taken = min(most, left)
    left -= taken
  setattr(iterator, _LEFT, left)
  return taken


def _length(iterator: Any) -> int:
  """Returns how many elements a new iterator has, or one of the numbers below 0 with which tf.data tells more."""
  length = strategy_iterators.length_of(iterator)
  if length == dataset_ops.UNKNOWN:
    length = _batches_of_arrays(iterator)
  return dataset_ops.UNKNOWN if length is None else length


def _batches_of_arrays(iterator: Any) -> Optional[int]:
  """Returns how many elements an iterator has that a method of Keras 3 has made of arrays; None for others.

  Keras cuts the batches by a function whose results tf.data does not count.
  """
  # pylint: disable=protected-access
  data = keras_frames.local_of("epoch_iterator", "predict")
  adapter = getattr(data, "data_adapter", None)
  if type(adapter).__name__ != "ArrayDataAdapter" or data._distributed_dataset is not iterator._dataset:
    return None
  return adapter.num_batches
