# SPDX-License-Identifier: Apache-2.0
"""Several ways to compute a record ahead of the step that uses it, behind one interface."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf
from tensorflow.python.ops import data_flow_ops

_JOIN_SECONDS = 0.1

Record = list[tf.Tensor]
# Starts to produce records in a session, until the context that it returns is left.
Start = Callable[[tf.compat.v1.Session], contextlib.AbstractContextManager]


class Source(NamedTuple):
  """The records, in the two forms that the ways need."""

  # Adds the ops that compute one record.
  record: Callable[[], Record]
  # Returns an endless dataset of these records.
  dataset: Callable[[], tf.data.Dataset]


def computed(record: Record) -> tf.Operation:
  """Adds one op that uses every component and copies none. As the target of a step, it is not optimized away."""
  return tf.raw_ops.IdentityN(input=record)[0].op


def no_stage(source: Source, capacity: int) -> tuple[Record, Start]:
  """Lets the step compute its record itself."""
  del capacity
  return source.record(), contextlib.nullcontext


def staged(source: Source, capacity: int) -> tuple[Record, Start]:
  """Uses `tf.staged`."""
  return tf.staged(source.record(), capacity=capacity), tf.make_prefetch_hook().running


def staging_area(source: Source, capacity: int) -> tuple[Record, Start]:
  """Uses a StagingArea that a Python thread fills."""
  record = source.record()
  area = data_flow_ops.StagingArea([t.dtype for t in record], [t.shape for t in record], capacity=capacity)
  put = area.put(record)
  clear = area.clear()

  @contextlib.contextmanager
  def start(session: tf.compat.v1.Session) -> Iterator[None]:
    put_once = session.make_callable(put)
    stopping = threading.Event()

    def produce() -> None:
      while not stopping.is_set():
        put_once()

    thread = threading.Thread(target=produce)
    thread.start()
    try:
      yield
    finally:
      stopping.set()
      while thread.is_alive():
        session.run(clear)  # Makes room for the put that waits.
        thread.join(_JOIN_SECONDS)

  return _components(area.get()), start


def fifo_queue(source: Source, capacity: int) -> tuple[Record, Start]:
  """Uses a FIFOQueue that a QueueRunner fills."""
  record = source.record()
  queue = tf.queue.FIFOQueue(capacity, [t.dtype for t in record], [t.shape for t in record])
  runner = tf.compat.v1.train.QueueRunner(queue, [queue.enqueue(record)])

  @contextlib.contextmanager
  def start(session: tf.compat.v1.Session) -> Iterator[None]:
    coordinator = tf.train.Coordinator()
    threads = runner.create_threads(session, coordinator, start=True)
    try:
      yield
    finally:
      coordinator.request_stop()
      coordinator.join(threads)

  return _components(queue.dequeue()), start


def smart_stage(source: Source, capacity: int) -> tuple[Record, Start]:
  """Uses SmartStage, for which the session needs the configuration of `smart_stage_config`."""
  del capacity
  return source.record(), tf.make_prefetch_hook().running


def smart_stage_config(capacity: int) -> tf.compat.v1.ConfigProto:
  """Returns the configuration of a session of the default graph for `smart_stage`."""
  config = tf.compat.v1.ConfigProto()
  options = config.graph_options.optimizer_options
  options.do_smart_stage = True
  options.smart_stage_options.CopyFrom(tf.SmartStageOptions(capacity=capacity))
  return config


def data(source: Source, capacity: int) -> tuple[Record, Start]:
  """Uses the dataset without a buffer, and an iterator."""
  del capacity
  return _iterator(source.dataset())


def data_prefetch(source: Source, capacity: int) -> tuple[Record, Start]:
  """Uses the dataset's `prefetch` and an iterator."""
  return _iterator(source.dataset().prefetch(capacity))


def _iterator(dataset: tf.data.Dataset) -> tuple[Record, Start]:
  iterator = tf.compat.v1.data.make_initializable_iterator(dataset)

  @contextlib.contextmanager
  def start(session: tf.compat.v1.Session) -> Iterator[None]:
    session.run(iterator.initializer)
    yield

  return list(iterator.get_next()), start


def _components(taken: tf.Tensor | Sequence[tf.Tensor]) -> Record:
  """Returns the components of a taken record as a list, even if it is a single tensor."""
  return [taken] if tf.is_tensor(taken) else list(taken)


# Given a source and the capacity of the buffer, returns the tensors of a step's record and a function that starts the
# production of records.
Way = Callable[[Source, int], tuple[Record, Start]]


@contextlib.contextmanager
def step_of(
    way: Way,
    source: Source,
    use: Callable[[Record], tf.Operation | list[tf.Tensor]],
    capacity: int = 1,
) -> Iterator[Callable[[], object]]:
  """Opens a graph and a session in which records are produced.

  Args:
    way: How the records reach the step.
    source: The records.
    use: Adds the op or the tensors that are the step, given the tensors of its record.
    capacity: The capacity of the buffer.

  Yields:
    A function that runs one step, and returns the values of the tensors.
  """
  with tf.Graph().as_default():
    record, start = way(source, capacity)
    step = use(record)
    config = smart_stage_config(capacity) if way is smart_stage else None
    with tf.compat.v1.Session(config=config) as session:
      session.run(tf.compat.v1.global_variables_initializer())
      with start(session):
        yield session.make_callable(step)
