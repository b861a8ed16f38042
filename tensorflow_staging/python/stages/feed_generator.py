# SPDX-License-Identifier: Apache-2.0
"""The `feed_list` and `feed_generator` of a stage: Python code that yields the fed values."""

import inspect
import threading
import weakref
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import Optional

import numpy as np
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.data.ops import options as options_lib
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops
from tensorflow.python.framework import sparse_tensor
from tensorflow.python.framework import tensor as tensor_lib
from tensorflow.python.framework import tensor_spec
from tensorflow.python.ops import array_ops
from tensorflow.python.ops import control_flow_ops

from tensorflow_staging.python import messages
from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.stages import named_feeds
from tensorflow_staging.python.stages import session_numbers

# Opens the data for a session, each time that the stage starts.
_Opener = Callable[[Optional[session_lib.BaseSession]], Iterator[Any]]

# The name scope of a generator's ops within that of its stage. Two of them have to be found by their names,
# because the options of a stage's runner do not mention them: the op that opens the data, and the number of
# the session, which is fed to it.
SCOPE = "feed_generator"
_OPEN_OP = "open_data"
_SESSION_OP = "session_number"


class GeneratorFeed:
  """Feeds tensors with the values that Python code yields, one record at a time.

  A tf.data iterator in the graph holds the position in the data. Therefore every session has its
  own data, the threads of a stage share it without entering the generator at the same time, and
  Python's global interpreter lock is held only while the generator runs.
  """

  def __init__(self, feed_list: Any, feed_generator: Any, graph: ops.Graph):
    """Checks the arguments without changing the graph.

    Args:
      feed_list: A list or tuple of the placeholders, other tensors or SparseTensors to feed.
      feed_generator: An iterable, or a callable that returns one. For each record, it yields a
        list or tuple of values in the order of `feed_list`. A callable may take the session.
      graph: The graph that every entry of `feed_list` must belong to.

    Raises:
      TypeError: If an argument has the wrong type.
      ValueError: If only one of `feed_list` and `feed_generator` is given, or an entry of
        `feed_list` cannot be fed or belongs to another graph.
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
      if not isinstance(entry, (tensor_lib.Tensor, sparse_tensor.SparseTensor)):
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
            f"feed_list must hold tensors whose values Python can create, but {tensor.name!r} has"
            f" type {tensor.dtype.base_dtype.name}. Use feed_dict.")
    self._open = _opener(feed_generator)
    # The sessions whose data has been opened and has not ended.
    self._open_in: weakref.WeakSet[session_lib.BaseSession] = weakref.WeakSet()

  def names(self) -> list[str]:
    """Returns the names of the fed tensors."""
    return [tensor.name for tensor in self._tensors]

  def add_to_graph(self) -> dict[str, str]:
    """Adds the tensors that yield the values, and what `open_data` needs, in the name scope `SCOPE`.

    Returns:
      A dict from the name of each fed tensor to the name of the tensor that yields its value.
    """
    number = array_ops.placeholder(dtypes.int64, [], name=_SESSION_OP)
    dataset = dataset_ops.DatasetV1.from_generator(
        self._records,
        output_signature=tuple(
            tensor_spec.TensorSpec(tensor.shape, tensor.dtype.base_dtype)
            for tensor in self._tensors),
        args=(number,))
    iterator = dataset_ops.make_initializable_iterator(dataset.with_options(_without_prefetching()))
    values = iterator.get_next()
    # open_data asks it which data is open.
    control_flow_ops.group(iterator.initializer, name=_OPEN_OP)._staging_feed = self
    return {tensor.name: value.name for tensor, value in zip(self._tensors, values)}

  def _records(self, number: np.int64) -> Iterator[tuple[Any, ...]]:
    """Opens the data and returns its records, each with one value for each of `self._tensors`."""
    session = session_numbers.session_of(int(number))
    # A map, unlike a generator, continues after an exception, which the stage may ignore.
    return map(self._flat, self._noting_end(self._open(session), session))

  def _noting_end(self, records: Iterator[Any], session: Optional[session_lib.BaseSession]) -> "_NotingEnd":
    if session is not None:
      self._open_in.add(session)
    return _NotingEnd(records, lambda: self._open_in.discard(session))

  def is_open(self, session: session_lib.BaseSession) -> bool:
    """Returns whether a session has opened the data, and has not come to its end."""
    return session in self._open_in

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
    for entry, value in zip(self._feed_list, values):
      if isinstance(entry, sparse_tensor.SparseTensor):
        indices, sparse_values, dense_shape = value
        flat += [indices, sparse_values, dense_shape]
      else:
        flat.append(value)
    # TensorFlow may share the memory of an array. The code may fill it anew for the next record, while another
    # thread of the stage still computes with this one.
    return tuple(np.array(value) if hasattr(value, "__array__") else value for value in flat)


def open_data(session: session_lib.BaseSession, options: bytes) -> None:
  """Opens the data of a stage for a session, if Python code feeds the stage. Required at each start.

  A stage that was stopped before the end of its data goes on where it was. It begins anew once the data has ended and
  the steps have taken all records.

  A run of the session does this, and not Python alone, so that each session has its own data. The run is fed
  a number that stands for the session, so that any number of sessions may open the data at the same time.

  Args:
    session: The session in which the stage starts. It has all nodes of the stage.
    options: The serialized `PrefetchRunnerOptions` of the stage.

  Raises:
    tf.errors.OpError: If the session cannot run the op, for example because it is closed.
    RuntimeError: If the session is closed.
  """
  runner = messages.PrefetchRunnerOptions.FromString(options)
  try:
    open_op = session.graph.get_operation_by_name(f"{runner.name}/{SCOPE}/{_OPEN_OP}")
  except KeyError:
    return
  feed = getattr(open_op, "_staging_feed", None)
  if feed is not None and (feed.is_open(session) or _has_records(session, runner)):
    return
  # As for the control ops of the stage: this never waits, and works while Python code of the previous start
  # holds every thread of the session.
  run_options = config_pb2.RunOptions(
      inter_op_thread_pool=-1, timeout_in_ms=runner.run_options.timeout_in_ms)
  number = {f"{runner.name}/{SCOPE}/{_SESSION_OP}:0": session_numbers.number_of(session)}
  session.run(open_op, number, options=run_options)


def _has_records(session: session_lib.BaseSession, runner: messages.PrefetchRunnerOptions) -> bool:
  """Returns whether records wait in a stage's buffer."""
  run_options = config_pb2.RunOptions(inter_op_thread_pool=-1, timeout_in_ms=runner.run_options.timeout_in_ms)
  return session.run(f"{runner.name}/{vocabulary.SIZE_OP}:0", options=run_options) > 0


def yields_values(iterator: ops.Operation) -> bool:
  """Returns whether an iterator holds the position in the data of a `feed_generator`.

  Args:
    iterator: The op of any iterator of a graph.
  """
  scope = iterator.name.rpartition("/")[0]
  if scope.rpartition("/")[2] != SCOPE:
    return False
  try:
    iterator.graph.get_operation_by_name(f"{scope}/{_OPEN_OP}")
  except KeyError:
    return False
  return True


class _NotingEnd:
  """An iterator that says when it has ended."""

  def __init__(self, iterator: Iterator[Any], on_end: Callable[[], None]):
    self._iterator = iterator
    self._on_end = on_end

  def __iter__(self) -> "_NotingEnd":
    return self

  def __next__(self) -> Any:
    try:
      return next(self._iterator)
    except StopIteration:
      self._on_end()
      raise


class _SharedIterator:
  """An iterator that several sessions may read, at the same time or one after the other."""

  def __init__(self, iterator: Iterator[Any]):
    self._iterator = iterator
    self._lock = threading.Lock()

  def __iter__(self) -> "_SharedIterator":
    return self

  def __next__(self) -> Any:
    with self._lock:
      return next(self._iterator)


def _opener(feed_generator: Any) -> _Opener:
  """Returns a function that opens the data, whichever form `feed_generator` has."""
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
  """Returns whether a function can be called with `count` positional arguments."""
  try:
    signature = inspect.signature(function)
  except ValueError:  # A built-in without a signature.
    return count == 0
  try:
    signature.bind(*[None] * count)
  except TypeError:
    return False
  return True


def _without_prefetching() -> options_lib.Options:
  """Returns options that keep tf.data from asking for records before the stage does."""
  options = options_lib.Options()
  options.autotune.enabled = False
  options.experimental_optimization.apply_default_optimizations = False
  options.experimental_optimization.inject_prefetch = False
  return options
