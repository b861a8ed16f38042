# SPDX-License-Identifier: Apache-2.0
"""Whatever a program does to its iterator, and in whatever order, stages change nothing of what its steps get.

Hypothesis draws histories of steps, initialisations, checkpoints, restores, restarts and discards. Each history runs in
a program without a stage and in one with stages, and what either yields is compared with a model of the iterator.
STAGING_HISTORIES says how many histories are drawn, 33 by default; with it they are different ones each time.
"""

import functools
import os
import tempfile
import time

import hypothesis
import pytest
import tensorflow.compat.v1 as tf
from hypothesis import stateful
from hypothesis import strategies

from tensorflow_staging.python.testing import history_model
from tensorflow_staging.python.testing import history_programs
from tensorflow_staging.python.testing.history_programs import Source
from tensorflow_staging.python.testing.history_programs import Way

_HISTORIES = int(os.environ.get("STAGING_HISTORIES", "33"))
_RULES_PER_HISTORY = 20
_SECONDS_PER_HISTORY = 3
# What Hypothesis takes at most to make a history that fails shorter.
_SECONDS_TO_SHRINK = 300

_BASES = strategies.sampled_from([200, 300, 400])
# Hypothesis makes a choice smaller to simplify it, so the simplest ones are first.
_CAPACITIES = strategies.sampled_from([1, 2, 5, tf.data.AUTOTUNE])


class _Track:
  """A program and the model of its iterator."""

  def __init__(self, case: history_programs.Case, settings: history_programs.Settings, *, keeps_order: bool):
    self.model = history_model.Model(keeps_order=keeps_order, has_stage=case.way is not Way.UNSTAGED)
    self.program = history_programs.Program(case, settings)
    self.evaluated = 0

  def begin_session(self, settings: history_programs.Settings) -> None:
    self.program.close()
    self.program = history_programs.Program(self.program.case, settings)
    self.model.begin_session()
    self.evaluated = 0

  def step(self, fetched: str) -> None:
    got = self.program.step(fetched)
    if got is tf.errors.OutOfRangeError:
      self.model.end()
    elif got is tf.errors.FailedPreconditionError:
      self.model.find_uninitialised()
    else:
      self.model.take(got)

  def save(self, path: str) -> tuple[str, frozenset[history_model.State]]:
    saved = self.program.save(path)
    assert (saved is not None) == self.model.is_initialised(), f"saved {saved}"
    return saved, self.model.states

  def restore(self, path: str, states: frozenset[history_model.State]) -> None:
    self.program.restore(path)
    case = self.program.case
    if case.restore_initialises():
      self.model.initialise("first", case.elements("first", 0))
    self.model.restore(states)


class _History(stateful.RuleBasedStateMachine):
  """One history, of a program without a stage and of one with stages."""

  def __init__(self, way: Way, num_threads: int):
    super().__init__()
    self._way = way
    self._num_threads = num_threads
    self._tracks = []
    self._checkpoints = []
    self._evaluates = False
    self._folder = tempfile.TemporaryDirectory()

  def teardown(self):
    for track in self._tracks:
      track.program.close()
    self._folder.cleanup()

  @stateful.initialize(
      source=strategies.sampled_from(Source), count=strategies.sampled_from([4, 1, 9]), capacity=_CAPACITIES,
      own_saveable=strategies.sampled_from([True, False]), prefetches=strategies.booleans(),
      fails_early=strategies.booleans(), evaluates=strategies.booleans(),
      is_initialised=strategies.sampled_from([True, True, True, False]))
  def begin(self, source, count, capacity, own_saveable, prefetches, fails_early, evaluates, is_initialised):
    self._evaluates = evaluates and source is Source.HANDLE
    for way in (Way.UNSTAGED, self._way):
      case = history_programs.Case(way, source, count, own_saveable, prefetches, fails_early)
      settings = history_programs.Settings(capacity, self._num_threads)
      self._tracks.append(_Track(case, settings, keeps_order=way is Way.UNSTAGED or self._num_threads == 1))
    self._case = case
    if is_initialised:
      self._initialise(0, 200, fails=False)
    for track in self._tracks:
      track.program.start()

  def _is_running(self):
    return bool(self._tracks) and self._tracks[0].program.is_running

  def _initialise(self, number, base, *, fails):
    name = self._case.initializers[number % len(self._case.initializers)]
    if self._num_threads > 1:
      base = 200  # Which of the records of other data waited at a save would not be known.
    for track in self._tracks:
      if fails:
        track.program.initialise_in_a_failing_run(name, base)
      else:
        track.program.initialise(name, base)
      track.model.initialise(name, self._case.elements(name, base))

  @stateful.precondition(_is_running)
  @stateful.rule(fetched=strategies.sampled_from(history_programs.FETCHES), count=strategies.integers(1, 3))
  def step(self, fetched, count):
    for track in self._tracks:
      for _ in range(count):
        track.step(fetched)

  @stateful.precondition(_is_running)
  @stateful.rule()
  def finish_the_data(self):
    for track in self._tracks:
      for _ in range(self._case.count + 1):
        track.step("nothing")

  @stateful.precondition(_is_running)
  @stateful.rule()
  def let_the_stage_run_ahead(self):
    time.sleep(0.01)

  @stateful.rule(number=strategies.integers(0, 1), base=_BASES, fails=strategies.sampled_from([False, False, True]))
  def initialise(self, number, base, fails):
    self._initialise(number, base, fails=fails)

  @stateful.rule(kind=strategies.integers(0, 2))
  def initialise_in_vain(self, kind):
    for track in self._tracks:
      if kind == 0 and self._case.is_fed(self._case.initializers[-1]):
        track.program.initialise_with_data_that_do_not_match()
      elif kind == 1 and self._case.source is Source.STRUCTURE:
        track.program.leave_the_branch_of_the_initialiser()
      else:
        track.program.initialise_with_another_type()

  @stateful.rule()
  def save(self):
    path = f"{self._folder.name}/{len(self._checkpoints)}"
    checkpoint = [track.save(f"{path}_{i}") for i, track in enumerate(self._tracks)]
    if checkpoint[0][0] is not None:
      self._checkpoints.append(checkpoint)

  @stateful.rule(age=strategies.integers(0, 2))
  def restore(self, age):
    self._restore(age)

  @stateful.precondition(_is_running)
  @stateful.rule(steps=strategies.integers(0, 4), pauses=strategies.booleans(), then=strategies.integers(0, 4))
  def go_back(self, steps, pauses, then):
    if pauses:
      self.let_the_stage_run_ahead()
    self.save()
    self.step("nothing", steps)
    self._restore(0)
    self.step("nothing", then)

  def _restore(self, age):
    if not self._checkpoints:
      self.save()
      if not self._checkpoints:
        return
    checkpoint = self._checkpoints[-1 - age % len(self._checkpoints)]
    for track, saved in zip(self._tracks, checkpoint):
      track.restore(*saved)

  @stateful.rule(
      age=strategies.integers(0, 2), capacity=_CAPACITIES, one_thread=strategies.booleans(),
      before=strategies.sampled_from(["start", "initialise", "restore"]), then=strategies.integers(0, 4))
  def restore_in_a_new_session(self, age, capacity, one_thread, before, then):
    if not self._checkpoints:
      self.save()
    for track in self._tracks:
      track.begin_session(history_programs.Settings(capacity, 1 if one_thread else self._num_threads))
    if before == "initialise":
      self._initialise(0, 300, fails=False)
    if before == "start":
      self._start()
    self._restore(age)
    if before != "start":
      self._start()
    self.step("nothing", then)

  def _start(self):
    for track in self._tracks:
      track.program.start()

  @stateful.rule(capacity=_CAPACITIES)
  def begin_anew(self, capacity):
    for track in self._tracks:
      track.begin_session(history_programs.Settings(capacity, self._num_threads))
    self._initialise(0, 400, fails=False)
    self._start()

  @stateful.rule()
  def stop_or_start(self):
    for track in self._tracks:
      if track.program.is_running:
        track.program.stop()
      else:
        track.program.start()

  @stateful.rule()
  def discard(self):
    for track in self._tracks:
      track.model.discard(*track.program.discard())

  @stateful.precondition(lambda self: self._is_running() and self._evaluates)
  @stateful.rule()
  def evaluate(self):
    for track in self._tracks:
      assert track.program.evaluate() == track.evaluated
      track.evaluated += 1


_CASES = [(way, num_threads) for way in Way for num_threads in (1, 3) if way is not Way.UNSTAGED or num_threads == 1]
_HISTORIES_PER_CASE = -(-_HISTORIES // len(_CASES))


@pytest.mark.timeout(_HISTORIES_PER_CASE * _SECONDS_PER_HISTORY + _SECONDS_TO_SHRINK)
@pytest.mark.parametrize("way,num_threads", [pytest.param(*c, id=f"{c[0].value}-{c[1]}") for c in _CASES])
def test_stages_change_nothing(way, num_threads):
  settings = hypothesis.settings(
      max_examples=_HISTORIES_PER_CASE, stateful_step_count=_RULES_PER_HISTORY, deadline=None, database=None,
      derandomize="STAGING_HISTORIES" not in os.environ, suppress_health_check=list(hypothesis.HealthCheck),
      print_blob=True)
  stateful.run_state_machine_as_test(functools.partial(_History, way, num_threads), settings=settings)
