# SPDX-License-Identifier: Apache-2.0
"""The data of a `predict` of Keras 3, which reads it in Python and gives the model's function the elements of a call.

Here the function gets in the place of each element who has it, and reads the iterator itself, so it can be staged.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import Optional

from tensorflow.python.eager import def_function
from tensorflow.python.framework import errors

from tensorflow_staging.python.ahead import keras_frames
from tensorflow_staging.python.ahead import strategy_iterators


class _Unread:
  """Stands for an element of an iterator; Keras takes it for the iterator."""

  def __init__(self, iterator: Any):
    self.iterator = iterator

  def __next__(self) -> "_Unread":
    return self


def leave_unread() -> None:
  """Lets the `predict` that calls the caller leave its data to the model's function."""
  of_predict = keras_frames.local_of("epoch_iterator", "predict")
  if of_predict is None:
    return
  enumerate_iterator = of_predict._enumerate_iterator

  def steps() -> Iterator[tuple[int, int, Any]]:
    for first, last, iterator in enumerate_iterator():
      yield first, last, iterator if strategy_iterators.owned_iterators(iterator) is None else _Unread(iterator)

  of_predict._enumerate_iterator = steps


def iterator_of(data: Any) -> Optional[Any]:
  """Returns the iterator that the model's function has to read; None if it has got elements."""
  return data[0].iterator if isinstance(data, list) and data and isinstance(data[0], _Unread) else None


def read(data: Sequence[Any]) -> Sequence[Any]:
  """Returns the elements of a call, as Keras reads them.

  Args:
    data: What the model's function has got.
  """
  iterator = iterator_of(data)
  if iterator is None:
    return data
  elements = []
  for _ in data:
    try:
      elements.append(next(iterator))
    except (StopIteration, errors.OutOfRangeError):
      if not elements:
        raise
      break
  return elements


def reading(function: Callable[[Sequence[Any]], Any], runs_eagerly: bool) -> Callable[..., Any]:
  """Returns a function of an iterator and a count that reads so many elements and calls the model's function."""

  def predict_on_iterator(iterator: Any, count: int) -> Any:
    return function([next(iterator) for _ in range(count)])

  return predict_on_iterator if runs_eagerly else def_function.function(
      predict_on_iterator, reduce_retracing=True, autograph=False)
