# SPDX-License-Identifier: Apache-2.0
"""Opens runs of the models of modelzoo/ on a device: source and step alone, and ways to the device without a stage."""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import threading
from collections.abc import Iterator

import tensorflow as tf
from tensorflow.python.ops import data_flow_ops

from lib import blocks
from lib import model_runs
from lib import ways
from modelzoo.base import dataset
from modelzoo.base import model as models
from modelzoo.base.staging import Staging
from modelzoo.base.training import Run

# No record takes so long.
_RECORD_SECONDS = 60
_JOIN_SECONDS = 0.01


def device_of(run: Run) -> str:
  """Returns the name of the device on which a model trains."""
  return "/gpu:0" if run.staging.gpu else "/cpu:0"


@contextlib.contextmanager
def source_alone(run: Run, threads: int) -> Iterator[blocks.Step]:
  """Opens a session that only reads and prepares batches, in so many threads at once, on the CPU.

  Yields:
    A function that returns when a further record has been computed.
  """
  run = dataclasses.replace(run, staging=Staging())
  with tf.Graph().as_default(), tf.Session(config=run.config()) as session:
    compute = session.make_callable(ways.computed(tf.nest.flatten(model_runs.read(run))))
    computed: queue.Queue[Exception | None] = queue.Queue(maxsize=1)
    stopping = threading.Event()

    def produce() -> None:
      error = None
      while not stopping.is_set() and error is None:
        try:
          compute()
        except Exception as raised:
          error = raised
        computed.put(error)

    def take() -> None:
      error = computed.get(timeout=_RECORD_SECONDS)
      if error is not None:
        raise error

    workers = [threading.Thread(target=produce) for _ in range(threads)]
    for worker in workers:
      worker.start()
    try:
      yield take
    finally:
      stopping.set()
      for worker in workers:
        while worker.is_alive():
          with contextlib.suppress(queue.Empty):
            computed.get_nowait()  # Makes room for the put that waits.
          worker.join(_JOIN_SECONDS)


@contextlib.contextmanager
def step_alone(run: Run) -> Iterator[blocks.Step]:
  """Opens training with one record, which is in variables on the device."""
  with tf.Graph().as_default(), tf.Session(config=dataclasses.replace(run, staging=Staging()).config()) as session:
    value = session.run(model_runs.read(run))

  def record() -> model_runs.Record:
    with tf.device(device_of(run)):
      variables = [tf.Variable(part, trainable=False, use_resource=True) for part in tf.nest.flatten(value)]
    return tf.nest.pack_sequence_as(value, [variable.read_value() for variable in variables])

  # A GPU has no variables of 32-bit integers.
  config = run.config()
  config.allow_soft_placement = True
  with model_runs.stepping(run, record, config=config) as step:
    yield step


@contextlib.contextmanager
def prefetched_to_device(run: Run) -> Iterator[blocks.Step]:
  """Opens training whose records tf.data copies to the device ahead of the step."""

  def record() -> model_runs.Record:
    pipeline = dataset.pipeline(
        run.input, run.model.format, lambda parsed: run.model.prepare(parsed, run.hyperparameters), training=True)
    to_device = tf.data.experimental.prefetch_to_device(device_of(run), buffer_size=2)
    iterator = tf.compat.v1.data.make_initializable_iterator(pipeline.dataset.apply(to_device))
    tf.compat.v1.add_to_collection(tf.compat.v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return pipeline.finish(iterator.get_next())

  with model_runs.stepping(run, record) as step:
    yield step


@contextlib.contextmanager
def staging_area(run: Run) -> Iterator[blocks.Step]:
  """Opens training with a StagingArea on the device: each step takes a record, and puts the next one beside that."""
  with tf.Graph().as_default():
    record = model_runs.read(run)
    tensors = tf.nest.flatten(record)
    with tf.device(device_of(run)):
      area = data_flow_ops.StagingArea([t.dtype for t in tensors], [t.shape for t in tensors], capacity=4)
      put = area.put([tf.identity(t) for t in tensors])
      taken = area.get()
    features, labels = tf.nest.pack_sequence_as(record, taken)
    built = models.build(run.model, features, labels, run.hyperparameters)
    with tf.Session(config=run.config()) as session:
      session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
      session.run(put)
      yield session.make_callable([built.train_op, built.loss, put])
