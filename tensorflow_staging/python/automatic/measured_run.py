# SPDX-License-Identifier: Apache-2.0
"""Measures the steps of a program that `python -m tensorflow.staging compare` runs, and ends it when it has enough.

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

from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import errors
from tensorflow.python.framework import ops

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.automatic import setting
from tensorflow_staging.python.session import busy_cores
from tensorflow_staging.python.session import callable_operations
from tensorflow_staging.python.session import early_runs
from tensorflow_staging.python.stats import advice
from tensorflow_staging.python.stats import gain
from tensorflow_staging.python.stats import period as period_lib
from tensorflow_staging.python.stats import stage_stats

_TYPES = (vocabulary.TAKE_OP, *early_runs.SOURCE_OPS)
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
  """

  seen: int
  steps: int
  seconds: float
  cores_busy: Optional[float]
  stages: list[tuple[str, str, str]]

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


def begin_if_asked() -> None:
  """Measures all steps from now on if the environment says so. Later calls do nothing."""
  if not _State.asked:
    _State.asked = True
    if (plan := Plan.from_environment()) is not None:
      _State.clocks = _Clocks(plan)
      _watch_sessions(_State.clocks)


def is_on() -> bool:
  """Returns whether steps are measured."""
  return _State.clocks is not None


def note_step(trains: Any, stages: Callable[[], Iterable[stage_stats.StageStats]]) -> None:
  """Notes a step that is no run of a session. Ends the program if it was the last one to measure.

  Args:
    trains: What has taken the step, such as a model.
    stages: Returns the statistics of its stages.
  """
  _State.clocks.note(trains, stages)


class _State:
  asked = False
  clocks: Optional["_Clocks"] = None


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
    # Whether a run is a step, by what it runs.
    self.is_step: dict[Any, bool] = {}

  def tick(self, stages: Callable[[], Iterable[stage_stats.StageStats]]) -> bool:
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
    return Result(self.seen, steps, seconds, self._busy, self._stages)


def _in_words(stages: Callable[[], Iterable[stage_stats.StageStats]]) -> list[tuple[str, str, str]]:
  try:
    lives = [(stage, period_lib.Period.of_life(stage)) for stage in stages()]
    return [(stage.name, gain.of_comparison(life), advice.at_the_end(stage, life)) for stage, life in lives]
  except errors.OpError:
    return []


class _Clocks:
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

  def note(self, trains: Any, stages: Callable[[], Iterable[stage_stats.StageStats]]) -> None:
    """Notes a step, and ends the program after the last one to measure."""
    clock = self.of(trains)
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


def _watch_sessions(clocks: _Clocks) -> None:
  """Watches the runs of all sessions."""
  base = session_lib.BaseSession
  do_run, make_callable, from_options = base._do_run, base.make_callable, base._make_callable_from_options

  def note(session: session_lib.BaseSession, is_step: bool) -> None:
    if is_step:
      clocks.note(session, lambda: stage_stats.stats(session))

  def is_step(session: session_lib.BaseSession, operations: Iterable[ops.Operation], feeds: Any) -> bool:
    known = clocks.of(session).is_step
    operations = list(operations)
    key = (tuple(map(id, operations)), tuple(map(id, feeds)))
    if key not in known:
      known[key] = early_runs.depends_on(_TYPES, operations, feeds)
    return known[key]

  def measured_do_run(self, handle, targets, fetches, feeds, *options):
    result = do_run(self, handle, targets, fetches, feeds, *options)
    note(self, is_step(self, [*targets, *(tensor.op for tensor in fetches)], feeds))
    return result

  def measured(self, call: Callable[..., Any], counts: bool) -> Callable[..., Any]:

    def measured_call(*arguments, **keywords):
      result = call(*arguments, **keywords)
      note(self, counts)
      return result

    return measured_call

  def measured_make_callable(self, fetches, feed_list=None, accept_options=False):
    call = make_callable(self, fetches, feed_list, accept_options)
    if feed_list is not None:
      return call  # It calls the session's method `run`.
    return measured(self, call, is_step(self, callable_operations.of_fetches(self, fetches), {}))

  def measured_from_options(self, options):
    operations, feeds = callable_operations.of_options(self, options)
    return measured(self, from_options(self, options), is_step(self, operations, feeds))

  base._do_run = measured_do_run
  base.make_callable = measured_make_callable
  base._make_callable_from_options = measured_from_options
