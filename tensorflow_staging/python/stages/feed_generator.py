# SPDX-License-Identifier: Apache-2.0
"""The `feed_list` and `feed_generator` of a stage: Python code that makes what is fed."""

import inspect
import itertools
import threading
import weakref
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

import numpy as np
from tensorflow.python.client import session as session_lib
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.data.ops import options as options_lib
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops
from tensorflow.python.framework import sparse_tensor
from tensorflow.python.framework import tensor_spec
from tensorflow.python.ops import script_ops

from tensorflow_staging.python.session import starting_session
from tensorflow_staging.python.stages import named_feeds

# What a generator is called with, each time that the stage starts.
_Open = Callable[[session_lib.BaseSession | None], Iterator[Any]]


class GeneratorFeed:
  """Feeds tensors with what Python code yields, a record at a time.

  The graph keeps the place in the data in an iterator of its own. So every session has its own
  data, the threads of a stage share it without entering the generator at the same time, and
  Python's lock is held only while the generator runs.
  """

  def __init__(self, feed_list: Any, feed_generator: Any, graph: ops.Graph):
    """Checks the arguments; the graph stays as it is.

    Args:
      feed_list: What is fed: a list or tuple of placeholders, other tensors or SparseTensors.
      feed_generator: What yields a list or tuple of values for each record, in the order of
        `feed_list`: an iterable, or a callable that returns one. A callable may take the session.
      graph: The graph that all of `feed_list` must belong to.

    Raises:
      TypeError: If an argument has the wrong type.
      ValueError: If only one of the two is given, or something in `feed_list` cannot be fed.
    """
    if feed_list is None or feed_generator is None:
      raise ValueError(
          "feed_list and feed_generator must be given together, got"
          f" feed_list={feed_list!r} and feed_generator={feed_generator!r}.")
    if not isinstance(feed_list, (list, tuple)) or not feed_list:
      raise TypeError(
          "feed_list must be a list or tuple of at least one placeholder or tensor, got"
          f" {feed_list!r} of type {type(feed_list).__name__}.")
    for i, entry in enumerate(feed_list):
      if not isinstance(entry, (ops.Tensor, sparse_tensor.SparseTensor)):
        raise TypeError(
            f"feed_list[{i}] must be a tf.Tensor or tf.SparseTensor, got {entry!r} of type"
            f" {type(entry).__name__}.")
    self._feed_list = list(feed_list)
    self._tensors = [
        tensor for i, entry in enumerate(feed_list)
        for tensor in named_feeds.fed_tensors(f"feed_list[{i}]", entry, graph)
    ]
    for tensor in self._tensors:
      if tensor.dtype.base_dtype in (dtypes.resource, dtypes.variant):
        raise ValueError(
            f"feed_list must hold tensors whose values Python can make, but {tensor.name!r} has"
            f" type {tensor.dtype.base_dtype.name}. Use feed_dict.")
    self._open = _opener(feed_generator)
    self._numbers = itertools.count()
    # The sessions whose stages have started and not yet asked for a record.
    self._started: dict[int, weakref.ref | None] = {}

  def names(self) -> list[str]:
    """The names of the tensors that are fed."""
    return [tensor.name for tensor in self._tensors]

  def add_to_graph(self) -> tuple[dict[str, str], ops.Operation]:
    """Adds the tensors that yield the values.

    Returns:
      From the name of each fed tensor to that of the tensor that yields its value, and the op
      that begins the data anew, to be run when the stage starts.
    """
    # The session is known while the stage starts, the data begins with the first record. The
    # number connects the two.
    number = script_ops.numpy_function(self._note_session, [], dtypes.int64, name="start")
    number.set_shape([])
    dataset = dataset_ops.DatasetV1.from_generator(
        self._records,
        output_signature=tuple(
            tensor_spec.TensorSpec(tensor.shape, tensor.dtype.base_dtype)
            for tensor in self._tensors),
        args=(number,))
    iterator = dataset_ops.make_initializable_iterator(dataset.with_options(_no_running_ahead()))
    values = iterator.get_next()
    feeds = {
        tensor.name: value.name for tensor, value in zip(self._tensors, values, strict=True)
    }
    return feeds, iterator.initializer

  def _note_session(self) -> np.int64:
    number = next(self._numbers)
    session = starting_session.current()
    self._started[number] = None if session is None else weakref.ref(session)
    return np.int64(number)

  def _records(self, number: np.int64) -> Iterator[tuple[Any, ...]]:
    """The generator's records, each as flat as `self._tensors`."""
    session = self._started.pop(int(number))
    # Unlike a generator, a map goes on after an exception, which may be one to ignore.
    return map(self._flat, self._open(session and session()))

  def _flat(self, values: Any) -> tuple[Any, ...]:
    if not isinstance(values, (list, tuple)):
      raise TypeError(
          "feed_generator must yield a list or tuple of values for each record, got"
          f" {values!r} of type {type(values).__name__}.")
    if len(values) != len(self._feed_list):
      raise ValueError(
          f"feed_generator must yield {len(self._feed_list)} values for each record, one for each"
          f" entry of feed_list, got {len(values)}.")
    flat = []
    for entry, value in zip(self._feed_list, values, strict=True):
      if isinstance(entry, sparse_tensor.SparseTensor):
        indices, sparse_values, dense_shape = value
        flat += [indices, sparse_values, dense_shape]
      else:
        flat.append(value)
    return tuple(flat)


class _SharedIterator:
  """An iterator that one session may read after another, or several at the same time."""

  def __init__(self, iterator: Iterator[Any]):
    self._iterator = iterator
    self._lock = threading.Lock()

  def __iter__(self) -> "_SharedIterator":
    return self

  def __next__(self) -> Any:
    with self._lock:
      return next(self._iterator)


def _opener(feed_generator: Any) -> _Open:
  """How to begin the data, whatever form it was given in."""
  if callable(feed_generator):
    if _takes(feed_generator, 0):
      return lambda session: iter(feed_generator())
    if _takes(feed_generator, 1):
      return lambda session: iter(feed_generator(session))
    raise TypeError(
        "feed_generator must be callable without arguments or with the session alone, got"
        f" {feed_generator!r}.")
  if isinstance(feed_generator, Iterable) and not isinstance(feed_generator, (str, bytes)):
    if isinstance(feed_generator, Iterator):
      feed_generator = _SharedIterator(feed_generator)
    return lambda session: iter(feed_generator)
  raise TypeError(
      "feed_generator must be a generator, another iterable or a callable that returns one, got"
      f" {feed_generator!r} of type {type(feed_generator).__name__}.")


def _takes(function: Callable[..., Any], count: int) -> bool:
  """Whether a function can be called with `count` positional arguments."""
  try:
    signature = inspect.signature(function)
  except ValueError:  # A built-in that does not tell.
    return count == 0
  try:
    signature.bind(*[None] * count)
  except TypeError:
    return False
  return True


def _no_running_ahead() -> options_lib.Options:
  """Options that keep tf.data from asking for more records than the stage does."""
  options = options_lib.Options()
  options.autotune.enabled = False
  options.experimental_optimization.apply_default_optimizations = False
  options.experimental_optimization.inject_prefetch = False
  return options
