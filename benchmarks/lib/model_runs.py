# SPDX-License-Identifier: Apache-2.0
"""Opens runs of the models of modelzoo/, for the benchmarks of models."""

from __future__ import annotations

import contextlib
import pathlib
import sys
import tempfile
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import tensorflow as tf

from lib import blocks
from lib import ways

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))

from modelzoo import data
from modelzoo.base import dataset
from modelzoo.base import model as models
from modelzoo.base.staging import Staging
from modelzoo.base.training import Run

_FILES = 4


class Way(NamedTuple):
  """What tf.data does, and what a stage does."""

  tf_data: str
  staging: Staging


# The features and labels of a batch.
Record = tuple[dict, tf.Tensor]


def write_files(
    folder: pathlib.Path, rows: int, data_sets: Sequence[str], files: int = _FILES) -> dict[str, pathlib.Path]:
  """Writes files of so many rows in all. Returns the folder of each data set, by its name."""
  folders = {}
  for name in data_sets:
    folders[name] = folder / name
    data.write(folders[name], data.Data(dataset=name, rows=rows, eval_rows=1, files=files))
  return folders


@contextlib.contextmanager
def files_of(model: models.Model, rows: int) -> Iterator[str]:
  """Writes files of so many rows that a model reads. Yields their folder, which goes with the context."""
  name = data_set_of(model)
  with tempfile.TemporaryDirectory() as folder:
    yield str(write_files(pathlib.Path(folder), rows, (name,))[name])


def data_set_of(model: models.Model) -> str:
  """Returns the name of the data set that a model reads."""
  return "criteo" if model.format.name == "criteo" else "taobao"


def read(run: Run) -> Record:
  """Adds the ops that read and prepare the next batch."""
  return dataset.batches(
      run.input, run.model.format, lambda parsed: run.model.prepare(parsed, run.hyperparameters), training=True,
      shard=run.cluster.task, shards=run.cluster.shards)


def one_record(run: Run) -> Callable[[], Record]:
  """Reads a batch; returns a function that adds ops which yield it again and again, at no cost."""
  with tf.Graph().as_default(), tf.Session() as session:
    value = session.run(read(run))
  return lambda: tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensors(value).repeat()).get_next()


@contextlib.contextmanager
def preparing(run: Run) -> Iterator[blocks.Step]:
  """Opens a graph and a session that only reads and prepares batches.

  Yields:
    A function that computes one record.
  """
  with tf.Graph().as_default(), tf.Session(config=run.config()) as session:
    yield session.make_callable(ways.computed(tf.nest.flatten(read(run))))


@contextlib.contextmanager
def training(
    run: Run,
    source: Callable[[], Record] | None = None,
    target: str = "",
    config: tf.ConfigProto | None = None,
) -> Iterator[tuple[blocks.Step, tf.Session]]:
  """Opens a graph and a session that trains, and runs its stages.

  Args:
    run: The model, its input, and its stages.
    source: Adds the ops that yield a record; None stands for those of the input.
    target: The server of the session; empty if it trains alone.
    config: The configuration of the session; None stands for that of the run.

  Yields:
    A function that runs one step, and the session.
  """
  with tf.Graph().as_default():
    with run.cluster.device():
      features, labels = run.staging.stage(source() if source else read(run))
      built = models.build(run.model, features, labels, run.hyperparameters)
    with tf.Session(target, config=config or run.config()) as session:
      session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
      with contextlib.ExitStack() as stack:
        for hook in run.staging.hooks():
          stack.enter_context(hook.running(session))
        yield session.make_callable([built.train_op, built.loss]), session


@contextlib.contextmanager
def stepping(run: Run, *arguments: Any, **options: Any) -> Iterator[blocks.Step]:
  """Does what `training` does, but yields only the function."""
  with training(run, *arguments, **options) as (step, _):
    yield step
