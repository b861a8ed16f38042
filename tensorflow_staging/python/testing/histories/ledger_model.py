# SPDX-License-Identifier: Apache-2.0
"""A program whose stages run ahead by the rule of `ledgers.py`, with a scheduler that chooses at random who goes on.

Each method that may wait is a generator; at each of its `yield`s, anything else may happen.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from collections.abc import Iterable
from typing import Any

from tensorflow_staging.python.testing.histories import iterator_model
from tensorflow_staging.python.testing.histories import ledgers
from tensorflow_staging.python.testing.histories import outcomes
from tensorflow_staging.python.testing.histories import programs
from tensorflow_staging.python.testing.histories import regions

# What a method that waits at most may do before it counts as hanging.
_MOST_TICKS = 100000
# What a stage chooses that may choose its capacity.
_CHOSEN_CAPACITY = 4

Saved = dict[str, tuple[iterator_model.Iterator, list[outcomes.Outcome]]]
Waits = Generator[None, None, Any]


class Run(ledgers.Holder):
  """A run of a branch, and what it has made: values, or a failure."""

  def __init__(self):
    super().__init__()
    self.values = regions.Values()
    self.failure: outcomes.Outcome | None = None


class Stage:
  """A stage: its records, oldest first, and the failure of each branch.

  Attributes:
    runs: The runs of each branch that have no record yet.
  """

  def __init__(self, stage: programs.Stage):
    self.stage = stage
    self.capacity = stage.capacity if stage.capacity > 0 else _CHOSEN_CAPACITY
    self.records: list[Run] = []
    self.failures: dict[int, Run] = {}
    self.runs: dict[int, list[Run]] = {branch: [] for branch in range(len(stage.branches))}

  def drop_stale(self) -> None:
    """Forgets what must not arrive."""
    self.records = [record for record in self.records if not record.is_stale]
    self.failures = {branch: run for branch, run in self.failures.items() if not run.is_stale}

  def take(self) -> Run | None:
    """Returns the next record, or the failure after all of them; None if there is neither yet."""
    if self.records:
      return self.records.pop(0)
    # A run that is under way may put a record from before the failure.
    failures = {branch: run for branch, run in self.failures.items() if not any(r.entries for r in self.runs[branch])}
    for branch, run in failures.items():
      if run.failure is not outcomes.END:
        return self.failures.pop(branch)
    if len(failures) < len(self.stage.branches):
      return None
    end = Run()
    end.failure = outcomes.END
    for run in failures.values():
      end.entries += run.entries
    self.failures = {}
    return end


class LedgerModel:
  """A program whose stages run ahead."""

  make_ledgers = ledgers.Ledgers

  def __init__(self, program: programs.Program, rng: random.Random):
    """Makes the model.

    Args:
      program: The program.
      rng: Chooses who goes on.
    """
    self.program = program
    self._rng = rng
    self.is_running = False
    self._tasks: list[Waits] = []

  def new_session(self, layout: programs.Layout) -> None:
    """Begins anew, with no data.

    Args:
      layout: The stages.
    """
    if self.is_running:
      self.stop()
    self.ledgers = self.make_ledgers(self.program.names)
    self.stages = [Stage(stage) for stage in self.program.stages(layout)]

  # What the program does.

  def step(self) -> outcomes.Outcome:
    """Returns what a step gets."""
    return self._do(self._step())

  def read_beside(self, name: str, way: int = 0) -> outcomes.Outcome:
    """Returns what a read beside the steps gets.

    Args:
      name: The source.
      way: How the program reads it; the model has one way.
    """
    del way
    return self._do(self._read_beside(name))

  def initialise(self, names: Iterable[str], data: iterator_model.Data) -> None:
    """Gives sources data.

    Args:
      names: The sources.
      data: The data.
    """
    self._do(self._change({
        name: (iterator_model.Iterator(self.program.names.index(name), data), []) for name in names}))

  def initialise_in_vain(self, name: str, way: int) -> None:
    """An initialiser fails.

    Args:
      name: The source.
      way: How it fails; the model has one way.
    """

  def initialise_again(self, names: Iterable[str]) -> None:
    """An initialiser runs that continues a restored position.

    Args:
      names: The sources.
    """

  def save(self, steps: int = 0) -> tuple[Saved, list[outcomes.Outcome]]:
    """Returns a checkpoint, and what steps got meanwhile.

    Args:
      steps: How many steps run while it is written.
    """
    got = []

    def step_on() -> Waits:
      for _ in range(steps):
        got.append((yield from self._step()))

    stepping = step_on()
    self._tasks.append(stepping)
    saved = self._do(self._save())
    while stepping in self._tasks:
      self._tick()
    return saved, got

  def restore(self, names: Iterable[str], saved: Saved, way: int = 0) -> None:
    """Restores sources from a checkpoint.

    Args:
      names: The sources.
      saved: The checkpoint.
      way: How the program does it; the model has one way.
    """
    del way
    self._do(self._change({name: saved[name] for name in names}))

  def discard(self) -> None:
    """What waits is made again, from the same elements."""
    self._ticks(12)
    self._roll_back([entry for ledger in self.ledgers.ledgers.values() for entry in ledger.unused()])

  def start(self, layout: programs.Layout) -> None:
    """Starts the producers.

    Args:
      layout: Another layout for the same iterators, where that is possible; the model goes on with the one that it has.
    """
    del layout
    self.is_running = True
    for i, stage in enumerate(self.stages):
      for branch in range(len(stage.stage.branches)):
        self._tasks += [self._produce(i, branch) for _ in range(stage.stage.num_threads)]

  def stop(self) -> None:
    """Stops the producers. What waits stays."""
    self.is_running = False
    while self._tasks:
      self._tick()

  def wait(self, ticks: int) -> None:
    """Lets the producers run.

    Args:
      ticks: How far.
    """
    self._ticks(ticks)

  # How it does that.

  def _step(self) -> Waits:
    while True:
      taken = self.stages[-1].take()
      if taken is not None:
        self._forget(taken)
        self._use(taken)
        return taken.values.record if taken.failure is None else taken.failure
      yield

  def _use(self, taken: Run) -> None:
    """A step has got a record or a failure."""
    self.ledgers.use(taken.entries)

  def _read_beside(self, name: str) -> Waits:
    ledger = self.ledgers.ledgers[name]
    while ledger.is_being_read:
      yield
    self._roll_back(ledger.unused())
    entry = ledger.take_back() or ledger.read()
    self.ledgers.use([entry])
    return entry.outcome

  def _change(self, iterators: Saved) -> Waits:
    for name, (iterator, restored) in iterators.items():
      self.ledgers.ledgers[name].change(iterator, restored)
      self._roll_back([])
      yield

  def _save(self) -> Waits:
    moment = self.ledgers.begin_save()
    saved = {}
    for name, ledger in self.ledgers.ledgers.items():
      while ledger.is_being_read:
        yield
      saved[name] = self.ledgers.saved(name, moment)
      yield
    self.ledgers.end_save(moment)
    return saved

  def _roll_back(self, entries: Iterable[ledgers.Entry]) -> None:
    self.ledgers.roll_back(entries)
    for stage in self.stages:
      stage.drop_stale()

  def _give_back(self, run: Run) -> None:
    self.ledgers.give_back(run)
    for stage in self.stages:
      stage.drop_stale()

  def _forget(self, holder: ledgers.Holder) -> None:
    """What somebody has taken holds nothing itself."""
    self.ledgers.holders = [one for one in self.ledgers.holders if one is not holder]

  # A producer.

  def _produce(self, i: int, branch: int) -> Waits:
    stage = self.stages[i]
    while self.is_running:
      if branch in stage.failures or len(stage.records) >= stage.capacity or not self._is_initialised():
        yield
        continue
      run = Run()
      self.ledgers.holders.append(run)
      stage.runs[branch].append(run)
      yield from self._compute(i, branch, run)
      stage.runs[branch].remove(run)
      if run.is_stale:
        continue
      if run.failure is None:
        stage.records.append(run)
      elif branch in stage.failures:
        self._give_back(run)
      else:
        stage.failures[branch] = run

  def _is_initialised(self) -> bool:
    return all(ledger.iterator.data is not None for ledger in self.ledgers.ledgers.values())

  def _compute(self, i: int, branch: int, run: Run) -> Waits:
    """Lets a run have values or a failure, or gives back what it holds."""
    stage = self.stages[i]
    ignores = True
    while ignores:
      run.failure, run.values = None, regions.Values()
      if i:
        yield from self._take(self.stages[i - 1], run)
      if run.failure is None and not run.is_stale:
        yield from self._run_region(stage.stage.branches[branch], run)
      # The record after it has the entries of what is ignored: it is not used before that.
      ignores = not run.is_stale and self.program.ignored(run.failure)
      if ignores:
        self._ignore(run)
    while self.is_running and not run.is_stale and run.failure is None and len(stage.records) >= stage.capacity:
      yield

  def _ignore(self, run: Run) -> None:
    """A run goes on after a failure that is ignored."""

  def _take(self, stage: Stage, run: Run) -> Waits:
    """A run takes the record of the stage before it."""
    while not run.is_stale:
      taken = stage.take()
      if taken is not None:
        self._forget(taken)
        run.entries += taken.entries
        run.values, run.failure = taken.values, taken.failure
        return
      if not self.is_running:
        self._give_back(run)
        return
      yield

  def _run_region(self, ops: tuple[programs.Op, ...], run: Run) -> Waits:
    region = regions.run(ops, run.values)
    outcome: outcomes.Outcome | None = None
    while True:
      yield
      if not self.is_running and not run.is_stale:
        self._give_back(run)
      if run.is_stale:
        return
      try:
        name = region.send(outcome)
      except StopIteration as stop:
        if outcomes.failed(stop.value):
          run.failure = stop.value
        else:
          run.values = stop.value
        return
      outcome = yield from self._read(name, run)

  def _read(self, name: str, run: Run) -> Waits:
    """Returns what a run reads; None if that does not count, because the run is stale."""
    ledger = self.ledgers.ledgers[name]
    while ledger.is_being_read:
      yield
    if run.is_stale:
      return None
    entry = ledger.take_back()
    if entry is None:
      ledger.is_being_read = True
      version = ledger.version
      yield
      ledger.is_being_read = False
      if ledger.version != version:
        self._give_back(run)
        return None
      entry = self._after_get_next(ledger)
    run.entries.append(entry)
    if run.is_stale:
      self._roll_back(run.entries)
      return None
    return entry.outcome

  def _after_get_next(self, ledger: ledgers.Ledger) -> ledgers.Entry:
    """Returns what a read gets once the iterator has yielded something."""
    entry = ledger.read()
    # What went back meanwhile comes first.
    before = ledger.take_back()
    if before is None:
      return entry
    entry.is_back = True
    return before

  # The scheduler.

  def _do(self, operation: Waits) -> Any:
    self._ticks(12)
    for _ in range(_MOST_TICKS):
      try:
        next(operation)
      except StopIteration as stop:
        return stop.value
      self._ticks(6)
    raise AssertionError("The program hangs.")

  def _ticks(self, most: int) -> None:
    for _ in range(self._rng.randrange(most + 1)):
      self._tick()

  def _tick(self) -> None:
    if self._tasks:
      task = self._rng.choice(self._tasks)
      try:
        next(task)
      except StopIteration:
        self._tasks.remove(task)
