# SPDX-License-Identifier: Apache-2.0
"""What an iterator yields after a history of initialisations, restores and discards: the oracle of `histories_test.py`.

What happens is known but for a few things: how many records a discard dropped that were just being made, and how many
records of fed data waited at a save. So the model keeps each state that is possible, and what a step yields rules out
those that do not agree with it.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import NamedTuple


class Held(NamedTuple):
  """A restored position that waits for the initialiser of its dataset."""

  initializer: str
  remaining: tuple[int, ...]
  missing: int
  # The dataset that has got it already: other data of the same initialiser do not.
  dataset: tuple[int, ...] | None = None


class State(NamedTuple):
  """One possible state."""

  # The initialiser that has run last; None before the first one.
  initializer: str | None = None
  # All elements of the dataset, and those that no step has taken.
  dataset: tuple[int, ...] = ()
  remaining: tuple[int, ...] = ()
  # How many of `remaining` may have been dropped. In a stage that keeps the order, only the first ones can, and each
  # number of them is a state of its own.
  missing: int = 0
  held: Held | None = None


class ModelError(AssertionError):
  """A program did what no possible state explains."""


class Model:
  """The possible states of an iterator."""

  def __init__(self, *, keeps_order: bool, has_stage: bool):
    """Begins with an iterator that is not initialised.

    Args:
      keeps_order: Whether records arrive in the order of their elements.
      has_stage: Whether something may read the iterator ahead of the steps.
    """
    self._keeps_order = keeps_order
    self._has_stage = has_stage
    self._states: frozenset[State] = frozenset([State()])

  @property
  def states(self) -> frozenset[State]:
    """What a checkpoint saves."""
    return self._states

  def is_initialised(self) -> bool:
    """Whether the iterator has a dataset."""
    return all(state.initializer is not None for state in self._states)

  def begin_session(self) -> None:
    """A new session does not know the iterator's dataset."""
    self._states = frozenset([State()])

  def initialise(self, name: str, elements: Sequence[int]) -> None:
    """The iterator gets a dataset, and the position that waits for it."""
    dataset = tuple(elements)

    def initialised(state: State) -> Iterable[State]:
      fresh = State(name, dataset, dataset, 0, state.held)
      held = state.held
      if held is None or held.initializer != name or held.dataset not in (None, dataset):
        return [fresh]
      fresh = fresh._replace(held=held._replace(dataset=dataset))
      continued = list(self._at_position(fresh, state.held))
      # A stage that runs ahead may have read the iterator since the restore; then nothing waits for the initialiser.
      return [*continued, fresh] if self._has_stage else continued

    self._become(initialised, f"initialiser {name!r}")

  def restore(self, saved: Iterable[State]) -> None:
    """The iterator gets a saved position, at once if it has the dataset of it."""
    saved = list(saved)

    def restored(state: State) -> Iterable[State]:
      for position in saved:
        held = Held(position.initializer, position.remaining, position.missing)
        if state.initializer == position.initializer:
          yield from self._at_position(state._replace(held=held), held)
        else:
          yield state._replace(held=held)

    self._become(restored, "restore")

  def discard(self, dropped: int, being_made: int) -> None:
    """A stage has dropped waiting records, and up to `being_made` more."""
    def discarded(state: State) -> Iterable[State]:
      if not self._keeps_order:
        return [state._replace(missing=min(state.missing + dropped + being_made, len(state.remaining)))]
      most = min(dropped + being_made, len(state.remaining))
      return [state._replace(remaining=state.remaining[count:]) for count in range(dropped, most + 1)]

    self._become(discarded, f"discard of {dropped} records and up to {being_made} in the making")

  def take(self, value: int) -> None:
    """A step has yielded `value`."""
    def taken(state: State) -> Iterable[State]:
      allowed = state.remaining[:1] if self._keeps_order else state.remaining
      if value in allowed:
        at = state.remaining.index(value)
        yield state._replace(remaining=state.remaining[:at] + state.remaining[at + 1:], held=None)

    self._become(taken, f"a step that yields {value}")

  def end(self) -> None:
    """A step has come to the end of the data."""
    def ended(state: State) -> Iterable[State]:
      if state.initializer is not None and len(state.remaining) <= state.missing:
        yield state._replace(remaining=(), missing=0, held=None)

    self._become(ended, "a step that comes to the end of the data")

  def find_uninitialised(self) -> None:
    """A step has said that the iterator has no dataset, so it has read nothing."""
    self._become(
        lambda state: [state] if state.initializer is None else [],
        "a step that finds the iterator without a dataset")

  def _at_position(self, state: State, held: Held) -> Iterable[State]:
    """The states in which a dataset continues at a position.

    The position is a number of elements. What waited beside it in stages, and in prefetch buffers of tf.data, is of the
    data at the save, which may have been fed with other values than the dataset has now.
    """
    saved = held.remaining
    if set(saved) <= set(state.dataset) or not self._keeps_order:
      return [state._replace(remaining=saved, missing=held.missing)]
    rest = state.dataset[len(state.dataset) - len(saved):]
    return [state._replace(remaining=saved[:count] + rest[count:]) for count in range(len(saved) + 1)]

  def _become(self, change: Callable[[State], Iterable[State]], what: str) -> None:
    new = frozenset(after for before in self._states for after in change(before))
    if not new:
      raise ModelError(f"{what}: possible was only {sorted(self._states, key=repr)}")
    self._states = new
