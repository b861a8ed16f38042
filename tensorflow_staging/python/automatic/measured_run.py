# SPDX-License-Identifier: Apache-2.0
"""Measures the steps of a program that the command `compare` runs, and ends it when it has enough.

A step is a run of a session that takes an element of an iterator or a record of a stage, or a batch of Keras's `fit`.
The program itself does not notice, but for its end.
"""

import atexit
import dataclasses
import json
import os
import pathlib
import threading
import time
import weakref
from collections.abc import Callable
from collections.abc import Iterable
from typing import Any
from typing import Optional

from tensorflow.python.framework import errors

from tensorflow_staging.python.automatic import setting
from tensorflow_staging.python.session import busy_cores
from tensorflow_staging.python.stats import advice
from tensorflow_staging.python.stats import counted_stages
from tensorflow_staging.python.stats import gain
from tensorflow_staging.python.stats import period as period_lib

# Fewer steps are no measurement.
_LEAST_STEPS = 10


@dataclasses.dataclass(frozen=True)
class Plan:
  """What to measure.

  Attributes:
    parent: The process that asks. Other processes with the variable, such as children of the program, measure nothing.
    result: The file for the result.
    warm_up: How many steps come before those that are measured.
    steps: How many steps to measure at most.
    seconds: For how long to measure at most.
  """

  parent: int
  result: str
  warm_up: int
  steps: int
  seconds: float

  def to_environment(self) -> str:
    """Returns the value of the variable."""
    return json.dumps(dataclasses.asdict(self))

  @classmethod
  def from_environment(cls) -> Optional["Plan"]:
    """Returns what this process is to measure; None if nothing."""
    if setting.COMPARE_VARIABLE not in os.environ:
      return None
    plan = cls(**json.loads(os.environ[setting.COMPARE_VARIABLE]))
    return plan if plan.parent == os.getppid() else None


@dataclasses.dataclass(frozen=True)
class Result:
  """What was measured.

  Attributes:
    seen: How many steps the session or model took that took most, those before the measurement included.
    steps: How many of them were measured.
    seconds: How long these took; 0 if too few were.
    cores_busy: Which part of that time the cores were busy, from 0 to 1; None if that is unknown.
    stages: The name of each stage, what it did, and what to do next, in words.
    is_fit: Whether the steps were those of Keras's `fit`.
  """

  seen: int
  steps: int
  seconds: float
  cores_busy: Optional[float]
  stages: list[tuple[str, str, str]]
  is_fit: bool = False

  @classmethod
  def read(cls, path: pathlib.Path) -> Optional["Result"]:
    """Reads the file that a program has written; None if it has written none."""
    try:
      return cls(**json.loads(path.read_text()))
    except FileNotFoundError:
      return None

  def write(self, path: pathlib.Path) -> None:
    """Writes the file, as a whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(dataclasses.asdict(self)))
    part.replace(path)


def begin_if_asked() -> Optional["Clocks"]:
  """Measures all steps that are noted from now on, if the environment says so.

  Returns:
    What notes them, the same for each call; None if nothing is measured.
  """
  if not _State.asked:
    _State.asked = True
    if (plan := Plan.from_environment()) is not None:
      _State.clocks = Clocks(plan)
  return _State.clocks


class _State:
  asked = False
  clocks: Optional["Clocks"] = None


class _Clock:
  """The steps of one session or model, from one to the next."""

  def __init__(self, plan: Plan):
    self._plan = plan
    self.seen = 0
    self._began = 0.0
    self._last = 0.0
    self._cores: Optional[busy_cores.CoreTimes] = None
    # Of the latest sample, and after how many measured steps the next one comes: a program may end, and with it its
    # stages, at any step.
    self._busy: Optional[float] = None
    self._stages: list[tuple[str, str, str]] = []
    self._next_sample = _LEAST_STEPS
    # Whether a run of a session is a step, by what it runs.
    self.is_step: dict[Any, bool] = {}
    # Whether the steps are those of a `fit`.
    self.is_fit = False

  def tick(self, stages: Callable[[], Iterable[counted_stages.StageStats]]) -> bool:
    """Counts a step. Returns whether it was the last one to measure."""
    self.seen += 1
    self._last = time.monotonic()
    measured = self.seen - self._plan.warm_up
    if measured == 0:
      self._cores = busy_cores.now()
      self._began = self._last
    if measured < _LEAST_STEPS:
      return False
    is_last = measured >= self._plan.steps or self._last - self._began >= self._plan.seconds
    if is_last or measured >= self._next_sample:
      self._next_sample *= 2
      self._busy = busy_cores.busy(self._cores, busy_cores.now())
      self._stages = _in_words(stages)
    return is_last

  def result(self) -> Result:
    steps = max(0, self.seen - self._plan.warm_up)
    seconds = self._last - self._began if steps >= _LEAST_STEPS else 0.0
    return Result(self.seen, steps, seconds, self._busy, self._stages, self.is_fit)


def _in_words(stages: Callable[[], Iterable[counted_stages.StageStats]]) -> list[tuple[str, str, str]]:
  try:
    lives = [(stage, period_lib.Period.of_life(stage)) for stage in stages()]
    return [(stage.name, gain.of_comparison(life), advice.at_the_end(stage, life)) for stage, life in lives]
  except errors.OpError:
    return []


class Clocks:
  """The clocks of all sessions and models of the program."""

  def __init__(self, plan: Plan):
    self._plan = plan
    self._renew_lock()
    # A thread that a forked child lacks may hold the lock.
    os.register_at_fork(after_in_child=self._renew_lock)
    self._clocks: weakref.WeakKeyDictionary[Any, _Clock] = weakref.WeakKeyDictionary()  # Guarded by _lock.
    # Those of sessions and models that no longer exist, too.
    self._all: list[_Clock] = []  # Guarded by _lock.
    atexit.register(self._end)

  def _renew_lock(self) -> None:
    # Reentrant, because a signal handler may run a step while the main thread holds the lock.
    self._lock = threading.RLock()

  def of(self, trains: Any) -> _Clock:
    """Returns the clock of a session or a model."""
    with self._lock:
      if trains not in self._clocks:
        self._clocks[trains] = _Clock(self._plan)
        self._all.append(self._clocks[trains])
      return self._clocks[trains]

  def note(
      self, trains: Any, stages: Callable[[], Iterable[counted_stages.StageStats]], is_fit: bool = False) -> None:
    """Notes a step, and ends the program after the last one to measure.

    Args:
      trains: The session or the model that has taken the step.
      stages: Returns the statistics of its stages.
      is_fit: Whether it was a step of Keras's `fit`.
    """
    clock = self.of(trains)
    clock.is_fit = is_fit
    with self._lock:
      if clock.tick(stages):
        clock.result().write(pathlib.Path(self._plan.result))
        # The rest of the program, such as its last checkpoint, does not matter.
        os._exit(0)

  def _end(self) -> None:
    """Says what there was if the program ends before it has taken all steps."""
    with self._lock:
      clock = max(self._all, key=lambda clock: clock.seen, default=_Clock(self._plan))
      clock.result().write(pathlib.Path(self._plan.result))
