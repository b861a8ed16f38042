# SPDX-License-Identifier: Apache-2.0
"""The data of a running `fit`: which iterator it reads, and how it goes on in the middle of an epoch.

Keras asks an object of its own for the iterator of each epoch and for the numbers of the steps. A method of it is
replaced on the object alone, so other calls of `fit` do not notice.
"""

import abc
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any
from typing import Optional

from tensorflow_staging.python.ahead import keras_frames
from tensorflow_staging.python.backup import dealt_data
from tensorflow_staging.python.backup import iterator_state
from tensorflow_staging.python.backup import position as position_lib

_OTHER_STEPS = (
    "The backup was written after step {step} of an epoch, with which no call of a step ends now. Compile the model"
    " with the same steps_per_execution, and give fit the same data and steps_per_epoch.")

# The states of an iterator and of one that reads nothing, by name.
_States = dict[str, iterator_state.IteratorState]


def of_caller() -> "FitData":
  """Returns the data of the `fit` that calls the caller.

  Raises:
    RuntimeError: If no `fit` of Keras calls it.
  """
  if (of_fit := keras_frames.local_of("epoch_iterator", "fit")) is not None:
    return _Keras3Data(of_fit)
  if (of_fit := keras_frames.local_of("data_handler", "fit")) is not None:
    return _Keras2Data(of_fit)
  raise RuntimeError("BackupAndRestore was called by something else than Keras's fit.")


class FitData(abc.ABC):
  """The data of a `fit`.

  Attributes:
    iterator: The iterator that the latest step has read.
  """

  # The attribute of Keras's object that has how many steps an epoch has.
  _steps_name = ""

  def __init__(self, of_fit: Any):
    """Wraps Keras's object.

    Args:
      of_fit: The object.
    """
    self._of_fit = of_fit
    self.iterator: Any = None
    # Reads nothing, so its state says how often the data was shuffled. That of an iterator which has come to the end,
    # perhaps ahead of the steps, does not.
    self._unread: Any = None
    # Where the first epoch begins, with the states of its iterator and of one that reads nothing; None if it is new.
    self._resumed: Optional[tuple[position_lib.Position, _States]] = None
    # What is to be called before its first step, if that is within an epoch.
    self._before_step: Optional[Callable[[], None]] = None

  def resume(
      self, model: Any, position: position_lib.Position, states: _States, before_step: Callable[[], None]) -> None:
    """Lets the `fit`, which begins, go on at a position.

    Args:
      model: The model.
      position: The position.
      states: What `states_at` has returned for it.
      before_step: Called before the first step, if that is within an epoch, and before callbacks hear of it.
    """
    self._resumed = position, states
    self._before_step = before_step if position.step else None
    self._begin_with(model, position)

  def states_at(self, position: position_lib.Position) -> _States:
    """Returns what to save of the data, by name, and notes in the position of the next step what belongs to it."""
    position.steps = getattr(self._of_fit, self._steps_name)
    position.continues = position.step > 0 or self._continues()
    position.steps_seen = self._steps_seen() if position.continues else 0
    return _states(self._kept() if position.continues else self._unread, self._unread)

  def new_states(self) -> _States:
    """Returns states of new iterators, to read those of a backup into."""
    return _states(self.new_iterator(), self.new_iterator())

  @abc.abstractmethod
  def new_iterator(self) -> Any:
    """Returns a new iterator of the data."""

  @abc.abstractmethod
  def note_begun(self, model: Any) -> None:
    """Notes that the first epoch of a `fit` that goes on has begun."""

  def _take_resumed(self) -> Any:
    """Returns the position and the states with which an epoch goes on; None if it is new."""
    resumed, self._resumed = self._resumed, None
    if resumed is not None and getattr(self._of_fit, self._steps_name) is None:
      setattr(self._of_fit, self._steps_name, resumed[0].steps)
    return resumed

  def _restore(self, iterator: Any, position: position_lib.Position, states: _States) -> None:
    """Gives the first iterator of a `fit` that goes on its state."""
    self._unread = self.new_iterator()
    if position.continues:
      states["iterator"].give_to(iterator)
      states["unread"].give_to(self._unread)
    else:
      states["unread"].give_to(self._unread)
      iterator_state.IteratorState(self.new_iterator()).give_to(iterator)

  def _note_step(self) -> None:
    """Notes that a step is about to begin."""
    before_step, self._before_step = self._before_step, None
    if before_step is not None:
      before_step()

  def _note(self, iterator: Any) -> None:
    """Notes the iterator of the next step."""
    if self._unread is None:
      # Both are new, and their states are the same.
      state = iterator_state.IteratorState(iterator)
      self._unread = self.new_iterator()
      state.give_to(self._unread)
    self.iterator = iterator

  @abc.abstractmethod
  def _begin_with(self, model: Any, position: position_lib.Position) -> None:
    """Tells Keras the epoch with which the `fit` begins."""

  @abc.abstractmethod
  def _continues(self) -> bool:
    """Returns at the end of an epoch whether the next one goes on with an iterator that there is."""

  def _kept(self) -> Any:
    """Returns the iterator of the next step."""
    return self.iterator

  def _steps_seen(self) -> int:
    """Returns how many steps have read it, if Keras has to know."""
    return 0


class _Keras3Data(FitData):
  """The data of a `fit` of Keras 3, which makes an iterator for each epoch unless it is given `steps_per_epoch`."""

  _steps_name = "_num_batches"

  def __init__(self, of_fit: Any):
    super().__init__(of_fit)
    of_fit._distributed_dataset = dealt_data.of(of_fit._distributed_dataset)
    self._enumerate = of_fit._enumerate_iterator
    of_fit._enumerate_iterator = self._steps
    self._is_within_epoch = False

  def new_iterator(self) -> Any:
    return iter(self._of_fit._get_iterator())

  def note_begun(self, model: Any) -> None:
    model._initial_epoch = None  # Otherwise, the next `fit` of the model would begin with it, too.

  def _begin_with(self, model: Any, position: position_lib.Position) -> None:
    model._initial_epoch = position.epoch

  def _continues(self) -> bool:
    return bool(self._of_fit.steps_per_epoch) and self._of_fit._current_iterator is not None

  def _kept(self) -> Any:
    return self.iterator if self._is_within_epoch else self._of_fit._current_iterator

  def _steps_seen(self) -> int:
    return self._of_fit._steps_seen

  def _steps(self) -> Iterator[tuple[int, int, Any]]:
    """Yields the first and the last step of each call, and the iterator, as Keras's method does."""
    resumed = self._take_resumed()
    self._is_within_epoch = True
    for first, last, iterator in self._enumerate():
      if resumed is not None:
        position, states = resumed
        if last + 1 < position.step:
          continue
        if (is_skipped := position.step > 0) and last + 1 > position.step:
          break
        self._restore(iterator, position, states)
        self._of_fit._steps_seen = position.steps_seen + (0 if is_skipped else last + 1 - first)
        resumed = None
        if is_skipped:
          continue
      self._note(iterator)
      self._note_step()
      yield first, last, iterator
    self._is_within_epoch = False
    if resumed is not None:
      raise ValueError(_OTHER_STEPS.format(step=resumed[0].step))


class _Keras2Data(FitData):
  """The data of a `fit` of Keras 2."""

  _steps_name = "_inferred_steps"

  def __init__(self, of_fit: Any):
    super().__init__(of_fit)
    of_fit._dataset = dealt_data.of(of_fit._dataset)
    self._enumerate = of_fit.enumerate_epochs
    of_fit.enumerate_epochs = self._epochs
    self._numbers = of_fit.steps
    of_fit.steps = self._steps

  def new_iterator(self) -> Any:
    return iter(self._of_fit._dataset)

  def note_begun(self, model: Any) -> None:
    model._training_state = None

  def _begin_with(self, model: Any, position: position_lib.Position) -> None:
    model._training_state = _Counters(position)

  def _continues(self) -> bool:
    return not self._of_fit._adapter.should_recreate_iterator()

  def _epochs(self) -> Iterator[tuple[int, Any]]:
    """Yields each epoch and its iterator, as Keras's method does."""
    for epoch, iterator in self._enumerate():
      if (resumed := self._take_resumed()) is not None:
        self._restore(iterator, *resumed)
      self._note(iterator)
      yield epoch, iterator

  def _steps(self) -> Iterator[int]:
    """Yields the number of each step of an epoch, as Keras's method does."""
    for number in self._numbers():
      self._note_step()
      yield number


class _Counters:
  """Answers Keras 2's question with which epoch and step a `fit` begins."""

  def __init__(self, position: position_lib.Position):
    self._position = position

  def maybe_load_initial_counters_from_ckpt(self, steps: Optional[int], *_: Any, **__: Any) -> tuple[int, int]:
    if steps is not None and self._position.step >= steps > 0:
      raise ValueError(_OTHER_STEPS.format(step=self._position.step))
    return self._position.epoch, self._position.step


def _states(iterator: Any, unread: Any) -> _States:
  return {"iterator": iterator_state.IteratorState(iterator), "unread": iterator_state.IteratorState(unread)}
