# SPDX-License-Identifier: Apache-2.0
"""The stage of the iterators of a step: the buffer of its records, and the threads that make them."""

import atexit
import operator
import os
import time
import weakref
from collections.abc import Sequence
from typing import Any
from typing import Optional

from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.eager import context
from tensorflow.python.eager import execute
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import ops
from tensorflow.python.ops import gen_resource_variable_ops
from tensorflow.python.ops import resource_variable_ops
from tensorflow.python.util import compat

from tensorflow_staging.python.ahead import ended_iterators
from tensorflow_staging.python.ahead import forked_child
from tensorflow_staging.python.ahead import iterator_counts
from tensorflow_staging.python.ahead import step_division
from tensorflow_staging.python.ahead import strategy_iterators
from tensorflow_staging.python.pywrap import _pywrap_staging
from tensorflow_staging.python.session import busy_cores

# So many steps are few for a stage.
_FEW_STEPS = 8

# The stages whose threads may run.
_running = weakref.WeakSet()

# What reads an iterator, and what saves and restores it.
_USES_OF_ITERATOR = ("_next_internal", "get_next_as_optional", "_serialize_to_tensors", "_restore_from_tensors")


class IteratorStage:
  """Runs the part ahead of a step for its iterators, most often one. Does not keep them alive.

  Attributes:
    division: The step's two functions.
    buffer: The handle of the buffer.
    reads_ahead: Whether it makes records before steps ask for them.
  """

  def __init__(
      self, division: step_division.StepDivision, iterators: Sequence[iterator_ops.OwnedIterator],
      values: Sequence[Any], limit: Optional[int], reads_ahead: bool, name: str, capacity: int,
      capacity_bytes: int, device_capacity_bytes: int, num_threads: int, tuning: Any):
    """Starts the threads.

    Args:
      division: The step's two functions.
      iterators: The iterators that they read.
      values: The values of the inputs of the step.
      limit: As for `set_limit`.
      reads_ahead: Whether it makes records before steps ask for them.
      name: The name of the stage.
      capacity: How many records the buffer holds, or `tf.data.AUTOTUNE`.
      capacity_bytes: How many bytes it holds in host memory; 0 sets no bound.
      device_capacity_bytes: The same for the memory of each device.
      num_threads: How many threads.
      tuning: The `StageTuning` of the step, which says how many if `num_threads` is `tf.data.AUTOTUNE`.
    """
    self.division = division
    self.name = name
    self.reads_ahead = reads_ahead
    # Of how many steps it was told, and how many had taken a record then, if it reads nothing ahead.
    self._limit, self._taken_before = limit, 0
    # Whichever thread gets its only element ends the stage because a call needs other records.
    self._endings = iter((True,))
    self._iterators = [weakref.ref(iterator) for iterator in iterators]
    # The resource lives as long as its handle, and the dataset owns the Python functions that make its elements.
    self._datasets = [strategy_iterators.datasets_of(iterator) for iterator in iterators]
    ctx = context.context()
    with ops.device("CPU:0"):
      self.buffer, = execute.execute(
          b"StepBuffer", 1, [],
          ("stage", name, "capacity", capacity, "capacity_bytes", capacity_bytes, "device_capacity_bytes",
           device_capacity_bytes), ctx)
    self._tuning = tuning
    # The states of random generators, and the copies from which the part ahead draws.
    self._states = []
    self._errors_taken = 0
    self._began, self._cores_began = time.monotonic(), busy_cores.now()
    copies = {}
    for i, dtype in division.random_states:
      copies[i] = self._copy_state(values[i], dtypes.as_dtype(dtype))
    self._inputs = _kept_inputs(division, values)
    inputs = [copies.get(i, values[i]) for i in division.ahead_inputs]
    attrs = [(key, compat.as_bytes(value)) for key, value in ctx.function_call_options.as_attrs().items()]
    # Whether random generators draw.
    self.draws = bool(copies)
    self._producers = _pywrap_staging.FunctionRunner(
        context=ctx._handle, function=division.ahead, device="", attrs=attrs, inputs=inputs,  # pylint: disable=protected-access
        buffer=self.buffer, num_threads=num_threads, limit=limit if reads_ahead else 0, tuning=tuning,
        states=list(copies.values()))
    self._producers.expect_states(self._read_states())
    _running.add(self)

  def makes_records_of(self, division: step_division.StepDivision, values: Sequence[Any]) -> bool:
    """Returns whether its records are those that the rest of a division takes.

    Args:
      division: The division of a trace.
      values: The values of the inputs of the trace.
    """
    if division is not self.division and division.definition_ahead != self.division.definition_ahead:
      return False
    # A Python value may choose a table, for example.
    inputs = _kept_inputs(division, values)
    return len(inputs) == len(self._inputs) and all(map(operator.is_, inputs, self._inputs))

  def _copy_state(self, state: ops.EagerTensor, dtype: dtypes.DType) -> ops.EagerTensor:
    # Where the part ahead draws.
    with ops.device("CPU:0" if self.division.is_on_host else state.device):
      copy = resource_variable_ops.ResourceVariable(
          gen_resource_variable_ops.read_variable_op(state, dtype), trainable=False)
    self._states.append((state, copy))
    return copy.handle

  def _read_states(self) -> list[ops.EagerTensor]:
    return [gen_resource_variable_ops.read_variable_op(state, copy.dtype) for state, copy in self._states]

  def find_changed_state(self) -> Optional[int]:
    """Returns the id of a random state that something else has changed since the last step, or None."""
    changed = self._producers.find_changed_state(self._read_states())
    return None if changed is None else id(self._states[changed][0])

  def draw_on(self) -> None:
    """Draws on from the states that the program's random generators have now. Nothing may wait."""
    self._producers.draw_on_from(self._read_states())

  def on_error(self) -> None:
    """After a step has failed: goes on with the next element, if it has failed with an error of the part ahead."""
    taken = self._producers.errors_taken()
    if taken == self._errors_taken:
      # The step may have taken a record without drawing as the record did.
      self._producers.expect_states([])
      return
    self._errors_taken = taken
    # All records before the error were taken, so the step has drawn as often as it would have without a stage.
    self.draw_on()
    self._producers.continue_after_error()

  def set_limit(self, steps: Optional[int]) -> None:
    """From here on makes the records of so many more steps, and then only those that steps ask for.

    Args:
      steps: How many; None for any number.
    """
    if self.reads_ahead:
      self._producers.set_limit(steps)
    else:
      self._limit, self._taken_before = steps, self.buffer_stats()["taken"]

  @property
  def limit(self) -> Optional[int]:
    """How many more steps it makes records for, or would if it read ahead; None for any number."""
    if self.reads_ahead:
      return self._producers.limit()
    taken = self.buffer_stats()["taken"] - self._taken_before
    return None if self._limit is None else max(self._limit - taken, 0)

  @property
  def is_new(self) -> bool:
    """Whether it has served hardly any step."""
    return self.buffer_stats()["taken"] < _FEW_STEPS

  def destinations(self) -> Optional[list[tuple[str, list[int]]]]:
    """Returns what each GPU gets of a record, its tensors by index; None before a step has taken one."""
    return self._producers.destinations()

  def buffer_stats(self) -> dict[str, Any]:
    """Returns the fields of the message BufferStats by name."""
    return self._producers.buffer_stats()

  def counts(self) -> iterator_counts.IteratorCounts:
    """Returns what has been counted since it began."""
    timed_records, record_micros = self._producers.times()
    cores = busy_cores.now()
    return iterator_counts.IteratorCounts(
        name=self.name, num_threads=self._producers.num_threads(), tunes_threads=self._tuning.tunes_threads(),
        threads_settled=self._tuning.settled(), buffer=self.buffer_stats(), timed_records=timed_records,
        record_micros=record_micros, seconds=time.monotonic() - self._began,
        cores_busy=busy_cores.busy(self._cores_began, cores), own_busy=busy_cores.own(self._cores_began, cores))

  def iterators(self) -> list[iterator_ops.OwnedIterator]:
    """Returns the iterators that it reads and that are alive."""
    return [iterator for reference in self._iterators if (iterator := reference()) is not None]

  def begins_to_end(self) -> bool:
    """Returns True to its first caller, which is to call `stop_reading_ahead`, and False to all others."""
    return next(self._endings, False)

  def stop_reading_ahead(self) -> None:
    """Gives back what no step has used, to whoever reads the iterators next.

    A call that another thread has begun gets its record all the same. The last such call ends the threads, since it
    refers to this object.
    """
    self._producers.stop_reading_ahead()

  def stop(self) -> None:
    """Ends the threads. What they have read and no step has used comes next for whoever reads the iterators."""
    self._producers.stop()
    _running.discard(self)


def _kept_inputs(division: step_division.StepDivision, values: Sequence[Any]) -> list[Any]:
  """Returns the values that the part ahead takes, but for the iterators, which it must not keep alive."""
  return [values[i] for i in division.ahead_inputs if i not in division.iterators]


def _abandon() -> None:
  """In a forked child process, makes sure that nothing waits for the threads of the stages, which the child lacks."""
  for stage in list(_running):
    iterators = stage.iterators()
    for owner in (stage, *iterators):
      forked_child.keep_for_ever(owner)
    for iterator in iterators:
      for name in _USES_OF_ITERATOR:
        setattr(iterator, name, forked_child.refuse_read)
  _running.clear()


os.register_at_fork(after_in_child=_abandon)


@atexit.register
def _end() -> None:
  """Ends all threads that may call Python functions, before the interpreter can no longer run these."""
  stages = list(_running)
  for stage in stages:
    stage.stop()
  ended_iterators.end_iterators([iterator for stage in stages for iterator in stage.iterators()])
