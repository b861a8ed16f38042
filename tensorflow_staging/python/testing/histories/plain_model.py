# SPDX-License-Identifier: Apache-2.0
"""What the steps of a program get that has no stage.

A state is a value, so that a set of states can say what is possible where a program leaves that open.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator as Iterates
from collections.abc import Sequence
from typing import NamedTuple

from tensorflow_staging.python.testing.histories import iterator_model
from tensorflow_staging.python.testing.histories import outcomes
from tensorflow_staging.python.testing.histories import programs
from tensorflow_staging.python.testing.histories import regions


class State(NamedTuple):
  """The iterators of a program.

  Attributes:
    iterators: One for each source.
    held: The sources that have got a position in the last restore, if no step has got a record since.
  """

  iterators: tuple[iterator_model.Iterator, ...]
  held: frozenset[str] = frozenset()


class PlainModel:
  """A program without a stage."""

  def __init__(self, program: programs.Program):
    """Makes the model.

    Args:
      program: The program.
    """
    self._program = program

  def new_session(self) -> State:
    """Returns the state in which no iterator has data."""
    return State(tuple(iterator_model.Iterator(i) for i in range(len(self._program.names))))

  def initialise(self, state: State, names: Iterable[str], data: iterator_model.Data) -> State:
    """Gives sources data. One that holds a position goes on there.

    Args:
      state: The state before.
      names: The sources.
      data: The data.
    """
    fresh = [name for name in names if name not in state.held]
    return state._replace(iterators=tuple(
        iterator_model.Iterator(iterator.source, data) if name in fresh else iterator
        for name, iterator in zip(self._program.names, state.iterators)))

  def restore(self, state: State, names: Iterable[str], saved: State) -> State:
    """Sets the positions of sources.

    Args:
      state: The state before.
      names: The sources.
      saved: A state that was saved.
    """
    names = frozenset(names)
    iterators = tuple(
        theirs if name in names else ours
        for name, ours, theirs in zip(self._program.names, state.iterators, saved.iterators))
    return State(iterators, names if self._program.holds_positions else frozenset())

  def read(self, state: State, name: str) -> tuple[outcomes.Outcome, State]:
    """Reads a source beside the steps.

    Args:
      state: The state before.
      name: The source.
    """
    outcome, after = self._next(state, name)
    return outcome, after if outcomes.failed(outcome) else after._replace(held=frozenset())

  def steps(self, state: State) -> Iterates[tuple[outcomes.Outcome, State]]:
    """Yields what a step may get, and the state after that.

    Args:
      state: The state before.
    """
    for outcome, after in self._steps(state):
      if self._program.ignored(outcome):
        yield from self.steps(after)
      else:
        yield outcome, after if outcomes.failed(outcome) else after._replace(held=frozenset())

  def only_outcome(self, state: State) -> outcomes.Outcome:
    """Returns what a run of the whole program gives, ignored or not, if there is no join.

    Args:
      state: The state before.
    """
    return self._run(state, self._program.ops, regions.Values())[0]

  def _steps(self, state: State) -> Iterates[tuple[outcomes.Outcome, State]]:
    if not self._program.joined:
      yield self._run(state, self._program.ops, regions.Values())
      return
    at_the_end = state
    ends = True
    for branch in self._program.joined:
      values, after = self._run_branch(state, branch)
      if values is outcomes.END:
        # The branches have no source in common.
        at_the_end = State(tuple(
            theirs if theirs != before else ours
            for before, ours, theirs in zip(state.iterators, at_the_end.iterators, after.iterators)), state.held)
        continue
      ends = False
      if outcomes.failed(values):
        yield values, after
      else:
        yield self._run(after, self._program.ops, values)
    if ends:
      yield outcomes.END, at_the_end

  def _run_branch(
      self, state: State, branch: Sequence[programs.Op]) -> tuple[regions.Values | outcomes.Outcome, State]:
    while True:
      values, state = self._values(state, branch, regions.Values())
      if not self._program.ignored(values):
        return values, state

  def _run(
      self, state: State, ops: Sequence[programs.Op], values: regions.Values) -> tuple[outcomes.Outcome, State]:
    values, state = self._values(state, ops, values)
    return (values if outcomes.failed(values) else values.record), state

  def _values(
      self, state: State, ops: Sequence[programs.Op],
      values: regions.Values) -> tuple[regions.Values | outcomes.Outcome, State]:
    region = regions.run(ops, values)
    outcome: outcomes.Outcome | None = None
    while True:
      try:
        name = region.send(outcome)
      except StopIteration as stop:
        return stop.value, state
      outcome, state = self._next(state, name)

  def _next(self, state: State, name: str) -> tuple[outcomes.Outcome, State]:
    at = self._program.names.index(name)
    outcome, after = state.iterators[at].next()
    iterators = list(state.iterators)
    iterators[at] = after
    return outcome, state._replace(iterators=tuple(iterators))
