# SPDX-License-Identifier: Apache-2.0
"""What autotune.py and order.py measure: stages whose settings are given, in sessions that train."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from collections.abc import Iterator
from typing import NamedTuple

import tensorflow as tf

from lib import blocks
from lib import hidden_layer
from lib import local_cluster
from lib import model_runs
from lib import remote_files
from lib import timed_work
from lib import ways
from modelzoo.base import model as models
from modelzoo.base.dataset import Input
from modelzoo.base.staging import Staging
from modelzoo.base.training import Run

BATCH = 256
_ROWS = 40_000
_QUICK_ROWS = 400
_QUICK_BATCH = 32
_MEGABYTE = 2**20
# How many sessions of a case are compared, and where equal settings differ by many percent from turn to turn.
SESSIONS = 4
SESSIONS_OF_NOISY = 8


class Setting(NamedTuple):
  """What a stage is told."""

  threads: int
  capacity: int
  # Whether several threads keep the order of the records. The models of modelzoo/ always do.
  deterministic: bool = True

  def __str__(self) -> str:
    return f"{self.threads}, {self.capacity}"


TUNED = Setting(tf.data.AUTOTUNE, tf.data.AUTOTUNE)


class Stage(NamedTuple):
  """Training with a stage in each session."""

  step: blocks.Step
  sessions: list[tf.compat.v1.Session]
  # How many records of each session a step takes.
  records: int = 1
  # After how many steps their times repeat.
  period: int = 1

  def put(self) -> float:
    """Returns for how many steps records have been put."""
    stats = [found for session in self.sessions for found in tf.staging.stats(session)]
    return sum(found.put for found in stats) / len(stats) / self.records

  def setting(self) -> Setting:
    """Returns the setting of the first session's stage, as it is now."""
    found, = tf.staging.stats(self.sessions[0])
    return Setting(found.num_threads, found.capacity)


# Opens training whose stage has a setting.
OpenStage = Callable[[Setting], contextlib.AbstractContextManager[Stage]]


class Grid(NamedTuple):
  """Fixed settings, of which the best is sought: all combinations of these."""

  threads: tuple[int, ...]
  capacities: tuple[int, ...] = (1, 4, 16)

  def __str__(self) -> str:
    return " × ".join(", ".join(map(str, numbers)) for numbers in self)


# For records that wait. What computes in all cores gets no more producers than the machine of the tables has cores.
_FOUR = Grid((1, 2, 4))
_TWO = Grid((1, 2))


class Case(NamedTuple):
  """A program, and the settings that it is measured with."""

  title: str
  # Given whether to be quick, prepares what training needs, and yields the function that opens it.
  prepared: Callable[[bool], contextlib.AbstractContextManager[OpenStage]]
  grid: Grid
  # How many sessions of the best setting, and of the one that AUTOTUNE chooses, are compared.
  sessions: int = SESSIONS
  # Whether tf.data holds many records for the stage, whose number changes while the program does not run.
  buffers_below: bool = False


@dataclasses.dataclass(frozen=True)
class _Staged:
  """Records that `tf.staged` takes ahead of the step."""

  record: Callable[[], ways.Record]
  # Adds what the step computes from its record.
  train: Callable[[ways.Record], tf.Operation | list[tf.Tensor]]
  config: tf.compat.v1.ConfigProto | None = None
  period: int = 1

  @contextlib.contextmanager
  def prepared(self, quick: bool) -> Iterator[OpenStage]:
    del quick
    yield self._open

  @contextlib.contextmanager
  def _open(self, setting: Setting) -> Iterator[Stage]:
    with tf.Graph().as_default():
      staged = tf.staged(
          self.record(), num_threads=setting.threads, capacity=setting.capacity, deterministic=setting.deterministic)
      step = self.train(staged)
      with tf.compat.v1.Session(config=self.config) as session:
        session.run(tf.compat.v1.global_variables_initializer())
        with tf.make_prefetch_hook().running(session):
          yield Stage(session.make_callable(step), [session], period=self.period)


def _numbers() -> tf.Tensor:
  return tf.compat.v1.data.make_one_shot_iterator(timed_work.counter()).get_next()


def _times(
    title: str,
    record: Callable[[int], float],
    step: Callable[[int], float],
    computes: bool = False,
    grid: Grid = _FOUR,
    period: int = 1,
) -> Case:
  """Returns the case of records and steps that take given times.

  Args:
    title: The times.
    record: Returns the milliseconds of a record, given its number.
    step: Returns the milliseconds of its step.
    computes: Whether they compute, or else sleep.
    grid: What is tried.
    period: After how many records the times repeat.
  """
  staged = _Staged(
      lambda: [timed_work.slow(_numbers(), record, computes)],
      lambda taken: timed_work.slow(taken[0], step, computes).op,
      tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1), period)
  return Case(title, staged.prepared, grid)


def _large(megabytes: int) -> Case:
  """Returns the case of large records, which the step takes and does not read."""
  record = lambda: [tf.fill([megabytes * _MEGABYTE // 4], tf.cast(_numbers(), tf.float32))]
  return Case(f"fills records of {megabytes} MB", _Staged(record, ways.computed).prepared, _TWO, SESSIONS_OF_NOISY)


def _one_hidden_layer(batch: int) -> Case:
  """Returns the case of the model and the records of pipelines.py."""
  staged = _Staged(hidden_layer.source(batch).record, hidden_layer.train)
  return Case(f"one hidden layer, batches of {batch}", staged.prepared, _TWO)


def _staging(setting: Setting) -> Staging:
  """Returns what modelzoo/ calls a setting of SmartStage."""
  threads, capacity = (0 if value == tf.data.AUTOTUNE else value for value in setting[:2])
  return Staging(staging="smart", threads=threads, capacity=capacity)


@contextlib.contextmanager
def _files(model: models.Model, tf_data: str, quick: bool) -> Iterator[Input]:
  """Writes the files of a model of modelzoo/, and yields how it reads them."""
  rows, batch = (_QUICK_ROWS, _QUICK_BATCH) if quick else (_ROWS, BATCH)
  with model_runs.files_of(model, rows) as data:
    yield Input(data=data, batch_size=batch, tf_data=tf_data)


def _model(name: str) -> Case:
  """Returns the case of a model of modelzoo/, whose preparation SmartStage takes out of the step."""
  model = models.load(name)
  return Case(model.name, functools.partial(_training, model, "plain"), _TWO)


def _remote(name: str) -> Case:
  """Returns the case of a model whose files have the latency of remote storage."""
  model = models.load(name)
  return Case(
      f"{model.name}, remote files", functools.partial(_training, remote_files.reading(model), "best"), _TWO,
      buffers_below=True)


@contextlib.contextmanager
def _training(model: models.Model, tf_data: str, quick: bool) -> Iterator[OpenStage]:
  with _files(model, tf_data, quick) as files:

    @contextlib.contextmanager
    def opened(setting: Setting) -> Iterator[Stage]:
      run = Run(model, model.hyperparameters(), files, staging=_staging(setting))
      with model_runs.training(run) as (step, session):
        yield Stage(step, [session])

    yield opened


@contextlib.contextmanager
def _cluster(delay: float, quick: bool) -> Iterator[OpenStage]:
  """Prepares DLRM with a parameter server and workers, as in parameter_servers.py."""
  model = models.load("dlrm")
  with _files(model, "best", quick) as files:

    @contextlib.contextmanager
    def opened(setting: Setting) -> Iterator[Stage]:
      run = Run(model, model.hyperparameters(), files, staging=_staging(setting))
      # Stages of one server that have the same name share their buffer, so each setting has servers of its own.
      with local_cluster.workers(delay) as servers, local_cluster.training(run, servers) as (step, sessions):
        yield Stage(step, sessions, local_cluster.STEPS_AT_ONCE)

    yield opened


def _behind(microseconds: int) -> Case:
  """Returns the case of servers whose network takes so long."""
  title = f"DLRM, parameter server behind {microseconds} µs"
  return Case(title, functools.partial(_cluster, microseconds / 1e6), _TWO, SESSIONS_OF_NOISY)


ALL: dict[str, Case] = {
    "waits_2_6": _times("waits 2 : 6 ms", lambda number: 2, lambda number: 6),
    "waits_4_4": _times("waits 4 : 4 ms", lambda number: 4, lambda number: 4),
    "waits_6_2": _times("waits 6 : 2 ms", lambda number: 6, lambda number: 2),
    "waits_8_0": _times("waits 8 : 0 ms", lambda number: 8, lambda number: 0, grid=Grid((1, 2, 4, 8))),
    "waits_by_turns": _times(
        "waits 0 or 7 : 4 ms, by turns of 6", lambda number: 7 * (number // 6 % 2), lambda number: 4, period=12),
    "waits_by_long_turns": _times(
        "waits 0 or 8 : 4.4 ms, by turns of 16", lambda number: 8 * (number // 16 % 2), lambda number: 4.4,
        grid=Grid((1, 2, 4), (1, 4, 16, 64)), period=32),
    "waits_jitter": _times(
        "waits 0 to 6 : 0 to 6 ms", lambda number: timed_work.jitter(number, 6),
        lambda number: timed_work.jitter(-number, 6), period=timed_work.JITTER_PERIOD),
    "computes_3_3": _times("computes 3 : 3 ms", lambda number: 3, lambda number: 3, computes=True),
    "computes_6_2": _times("computes 6 : 2 ms", lambda number: 6, lambda number: 2, computes=True),
    "large": _large(16),
    "hidden_256": _one_hidden_layer(256),
    "hidden_32": _one_hidden_layer(32),
    "cluster_250": _behind(250),
    "cluster_3000": _behind(3000),
} | {name: _model(name) for name in models.NAMES} | {
    f"{name}_remote": _remote(name) for name in ("dlrm", "wide_and_deep")
}
