# SPDX-License-Identifier: Apache-2.0
"""Measures the steps of a program that `python -m tensorflow.staging compare` runs, and ends it when it has enough.

A step is a run of a session that takes an element of an iterator or a record of a stage. The program itself does not
notice, but for its end.
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
from tensorflow_staging.python.automatic import callable_operations
from tensorflow_staging.python.session import busy_cores
from tensorflow_staging.python.session import early_runs
from tensorflow_staging.python.stats import advice
from tensorflow_staging.python.stats import period as period_lib
from tensorflow_staging.python.stats import stage_stats

# The environment variable in which `compare` says what to measure.
VARIABLE = "TF_STAGING_COMPARE"

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
    if VARIABLE not in os.environ:
      return None
    plan = cls(**json.loads(os.environ[VARIABLE]))
    return plan if plan.parent == os.getppid() else None


@dataclasses.dataclass(frozen=True)
class Result:
  """What was measured.

  Attributes:
    seen: How many steps the session took that took most, those before the measurement included.
    steps: How many of them were measured.
    seconds: How long these took; 0 if too few were.
    cores_busy: Which part of that time the cores were busy, from 0 to 1; None if that is unknown.
    stages: The name of each stage of the session, what it gained, and what to do next, in words.
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
  """Measures the steps of all sessions from now on if the environment says so. Later calls do nothing."""
  if not _State.asked:
    _State.asked = True
    if (plan := Plan.from_environment()) is not None:
      _measure(plan)


class _State:
  asked = False


class _Clock:
  """The steps of one session, from one to the next."""

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

  def tick(self, session: session_lib.BaseSession) -> bool:
    """Counts a step of the session. Returns whether it was the last one to measure."""
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
      self._stages = _stages(session)
    return is_last

  def result(self) -> Result:
    steps = max(0, self.seen - self._plan.warm_up)
    seconds = self._last - self._began if steps >= _LEAST_STEPS else 0.0
    return Result(self.seen, steps, seconds, self._busy, self._stages)


def _stages(session: session_lib.BaseSession) -> list[tuple[str, str, str]]:
  try:
    return [
        (stage.name, stage.gain, advice.at_the_end(stage, period_lib.Period.of_life(stage)))
        for stage in stage_stats.stats(session)
    ]
  except errors.OpError:
    return []


def _measure(plan: Plan) -> None:
  """Watches the runs of all sessions."""
  base = session_lib.BaseSession
  clocks: weakref.WeakKeyDictionary[session_lib.BaseSession, _Clock] = weakref.WeakKeyDictionary()
  # Those of sessions that no longer exist, too.
  all_clocks: list[_Clock] = []
  lock = threading.Lock()
  do_run, make_callable, from_options = base._do_run, base.make_callable, base._make_callable_from_options

  def clock_of(session: session_lib.BaseSession) -> _Clock:
    if session not in clocks:
      clocks[session] = _Clock(plan)
      all_clocks.append(clocks[session])
    return clocks[session]

  def note(session: session_lib.BaseSession, is_step: bool) -> None:
    if not is_step:
      return
    with lock:
      clock = clock_of(session)
      if clock.tick(session):
        clock.result().write(pathlib.Path(plan.result))
        # The rest of the program, such as its last checkpoint, does not matter.
        os._exit(0)

  def is_step(session: session_lib.BaseSession, operations: Iterable[ops.Operation], feeds: Any) -> bool:
    with lock:
      known = clock_of(session).is_step
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

  @atexit.register
  def end() -> None:
    """Says what there was if the program ends before it has taken all steps."""
    with lock:
      clock = max(all_clocks, key=lambda clock: clock.seen, default=_Clock(plan))
      clock.result().write(pathlib.Path(plan.result))
