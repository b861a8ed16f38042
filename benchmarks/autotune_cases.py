# SPDX-License-Identifier: Apache-2.0
"""What autotune.py measures: stages whose settings are given, in sessions that train."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import tempfile
from collections.abc import Callable
from collections.abc import Iterator
from typing import ClassVar
from typing import NamedTuple

import blocks
import model_runs
import spending
import tensorflow as tf

from modelzoo.base import model as models
from modelzoo.base.dataset import Input
from modelzoo.base.staging import Staging
from modelzoo.base.training import Run

BATCH = 256
_ROWS = 40_000
_QUICK_ROWS = 400
_QUICK_BATCH = 32


class Setting(NamedTuple):
  """What a stage is told."""

  threads: int
  capacity: int

  def __str__(self) -> str:
    return f"{self.threads}, {self.capacity}"


TUNED = Setting(tf.data.AUTOTUNE, tf.data.AUTOTUNE)


class Stage(NamedTuple):
  """A session that trains with one stage."""

  step: blocks.Step
  session: tf.compat.v1.Session


# Opens a session whose stage has a setting.
OpenStage = Callable[[Setting], contextlib.AbstractContextManager[Stage]]


@dataclasses.dataclass(frozen=True)
class Times:
  """A record and a step that take given times, in milliseconds."""

  threads: ClassVar[tuple[int, ...]] = (1, 2, 4)
  title: str
  record: Callable[[int], float]
  step: float
  computes: bool = False

  @contextlib.contextmanager
  def prepared(self, quick: bool) -> Iterator[OpenStage]:
    """Yields the function that opens a session."""
    del quick
    yield self._open

  @contextlib.contextmanager
  def _open(self, setting: Setting) -> Iterator[Stage]:
    with tf.Graph().as_default():
      number = tf.compat.v1.data.make_one_shot_iterator(spending.counter()).get_next()
      record = tf.staged(
          spending.slow(number, self.record, self.computes), num_threads=setting.threads, capacity=setting.capacity)
      step = spending.slow(record, lambda number: self.step, self.computes).op
      config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1)
      with tf.compat.v1.Session(config=config) as session, tf.make_prefetch_hook().running(session):
        yield Stage(session.make_callable(step), session)


@dataclasses.dataclass(frozen=True)
class Training:
  """A model of modelzoo/, whose preparation SmartStage takes out of the step."""

  # As many as the machine of the tables has cores, because a model computes in all of its threads.
  threads: ClassVar[tuple[int, ...]] = (1, 2)
  name: str

  @property
  def title(self) -> str:
    return models.load(self.name).name

  @contextlib.contextmanager
  def prepared(self, quick: bool) -> Iterator[OpenStage]:
    """Writes the files; yields the function that opens a session."""
    model = models.load(self.name)
    rows, batch = (_QUICK_ROWS, _QUICK_BATCH) if quick else (_ROWS, BATCH)
    with tempfile.TemporaryDirectory() as folder:
      files = Input(
          data=model_runs.write_files_of(model, pathlib.Path(folder), rows), batch_size=batch, tf_data="plain")

      @contextlib.contextmanager
      def opened(setting: Setting) -> Iterator[Stage]:
        threads, capacity = (0, 0) if setting == TUNED else setting
        staging = Staging(staging="smart", threads=threads, capacity=capacity)
        with model_runs.training(Run(model, model.hyperparameters(), files, staging=staging)) as (step, session):
          yield Stage(step, session)

      yield opened


ALL: dict[str, Times | Training] = {
    "waits_2_6": Times("waits 2 : 6 ms", lambda number: 2, 6),
    "waits_4_4": Times("waits 4 : 4 ms", lambda number: 4, 4),
    "waits_6_2": Times("waits 6 : 2 ms", lambda number: 6, 2),
    "waits_by_turns": Times("waits 0 or 7 : 4 ms, by turns of 6", lambda number: 7 * (number // 6 % 2), 4),
    "computes_3_3": Times("computes 3 : 3 ms", lambda number: 3, 3, computes=True),
    "computes_6_2": Times("computes 6 : 2 ms", lambda number: 6, 2, computes=True),
} | {name: Training(name) for name in models.NAMES}
