# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.ahead`: runs the part of a `tf.function` step that needs no variable ahead of it."""

import threading
import weakref
from collections.abc import Callable
from typing import Any
from typing import Optional

from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.eager import context
from tensorflow.python.eager import record
from tensorflow.python.eager.polymorphic_function import eager_function_run
from tensorflow.python.eager.polymorphic_function import function_type_utils
from tensorflow.python.framework import errors
from tensorflow.python.platform import tf_logging
from tensorflow.python.types import distribute as distribute_types
from tensorflow.python.util import nest
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.ahead import iterator_stage
from tensorflow_staging.python.ahead import saved_iterator
from tensorflow_staging.python.ahead import step_division
from tensorflow_staging.python.ahead import step_inputs
from tensorflow_staging.python.stages import argument_checks

# The attribute of an iterator that refers to the step that reads it ahead.
_READER = "_staging_reader"


@tf_export("staging.ahead")
def ahead(
    step: Callable[..., Any],
    capacity: int = vocabulary.AUTOTUNE,
    num_threads: int = 1,
    *,
    capacity_bytes: int = 0,
    name: Optional[str] = None,
) -> "AheadStep":
  """Returns a step that runs its input ahead: what it computes of its data without a variable.

  `step` is a `tf.function` with a `tf.data.Iterator` among its arguments, which it reads with `next`. The result is
  called as `step` is, and returns what it returns. While one step trains, threads prepare the records of the next
  steps: strings are split and hashed, looked up in tables that do not change, and images augmented.

  For example:

  ```python
  import tensorflow as tf

  weights = tf.Variable(tf.zeros([100]))

  @tf.function
  def step(iterator):
    ids = tf.strings.to_hash_bucket_fast(next(iterator), 100)
    weights.scatter_add(tf.IndexedSlices(tf.ones_like(ids, tf.float32), ids))
    return tf.reduce_sum(weights)

  step = tf.staging.ahead(step, capacity=4)
  dataset = tf.data.Dataset.from_tensor_slices(["a", "b", "c", "a"]).batch(2)
  for epoch in range(2):
    iterator = iter(dataset)
    try:
      while True:
        print(step(iterator).numpy())
    except tf.errors.OutOfRangeError:
      pass  # The end of the data, as without a stage.
  ```

  Each record is used once, in order with one thread. An error comes after as many steps as without a stage, and the
  next step goes on with the next element. The threads of an iterator end when it is deleted, when the step is, and when
  the program ends. A step of which nothing can run ahead is called as it is; a warning in one line says why.

  Args:
    step: The step, a `tf.function`.
    capacity: How many records may wait, at least 1, or `tf.data.AUTOTUNE`.
    num_threads: How many threads prepare records, at least 1. Several threads read elements in any order.
    capacity_bytes: How many bytes the waiting records may take; 0 sets no bound, or 512 MiB if `capacity` is
      `tf.data.AUTOTUNE`.
    name: The name of the stage. None stands for the name of `step`.

  Returns:
    A callable. Its `why_not` says why the latest step was called as it is; None if it was not.

  Raises:
    TypeError: If `step` cannot be called, or an argument has the wrong type.
    ValueError: If an argument is out of range.
  """
  if not callable(step):
    raise TypeError(f"step must be a tf.function, got {step!r} of type {type(step).__name__}.")
  argument_checks.check_int("capacity", capacity, minimum=1, autotune=True)
  argument_checks.check_int("num_threads", num_threads, minimum=1, maximum=vocabulary.MAX_THREADS)
  argument_checks.check_int("capacity_bytes", capacity_bytes, minimum=0, maximum=argument_checks.INT64_MAX)
  argument_checks.check_name(name)
  return AheadStep(step, capacity, num_threads, capacity_bytes, name or getattr(step, "__name__", "step"))


class AheadStep:
  """A step whose input runs ahead; see `tf.staging.ahead`.

  Attributes:
    step: The step as the program made it.
    why_not: Why the latest step was called as it is; None if it was not.
  """

  def __init__(
      self, step: Callable[..., Any], capacity: int, num_threads: int, capacity_bytes: int, name: str,
      warn: Callable[[str], None] = tf_logging.warning):
    self.step = step
    self.why_not: Optional[str] = None
    self._options = {
        "name": name, "capacity": capacity, "capacity_bytes": capacity_bytes, "num_threads": num_threads}
    self._warn = warn
    self._told = set()
    self._lock = threading.RLock()
    # By the id of a trace: its division, or why it has none.
    self._divisions = {}
    # By the id of an iterator: a weak reference, and its stage; None if its steps are called as they are.
    self._stages = {}
    # The end of an iterator, or of this step, ends the threads.
    weakref.finalize(self, _stop_all, self._stages).atexit = False
    self.__name__ = name
    self.__doc__ = getattr(step, "__doc__", None)

  def __call__(self, *args, **kwargs) -> Any:
    if not context.executing_eagerly():
      return self.step(*args, **kwargs)  # A part of another function.
    iterator, why_not = self._iterator_of(args, kwargs)
    if iterator is None:
      if any(self.reads(a) for a in nest.flatten((args, kwargs)) if isinstance(a, iterator_ops.OwnedIterator)):
        raise self._cannot_use(why_not)
      return self._call_unstaged(why_not, args, kwargs)
    known = self._stages.get(id(iterator))
    if known is None:
      with self._lock:
        known = self._stages.get(id(iterator)) or self._begin(iterator, args, kwargs)
    stage, why_not, trace = known[1:]
    if stage is None:
      return self._call_unstaged(why_not, args, kwargs)
    self.why_not = None
    if trace is None or record.could_possibly_record() or eager_function_run.RUN_FUNCTIONS_EAGERLY:
      division, inputs = self._rest(stage, iterator, args, kwargs)
    else:
      division, inputs = trace
    try:
      return division.rest.flat_call(inputs)
    except errors.OpError:
      stage.on_error()
      raise

  def _call_unstaged(self, why_not: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    self.why_not = why_not
    if why_not not in self._told:
      self._told.add(why_not)
      self._warn(f"{self.__name__} runs without a stage: {why_not}.")
    return self.step(*args, **kwargs)

  def _iterator_of(
      self, args: tuple[Any, ...], kwargs: dict[str, Any]
  ) -> tuple[Optional[iterator_ops.OwnedIterator], str]:
    """Returns the iterator among the arguments, or None and why there is no stage for it."""
    if len(args) == 1 and not kwargs and isinstance(args[0], iterator_ops.OwnedIterator):
      return args[0], ""
    iterators = [
        a for a in nest.flatten((args, kwargs)) if isinstance(a, iterator_ops.OwnedIterator)]
    if not iterators:
      return None, _why_no_iterator(args, kwargs)
    if any(isinstance(a, (bool, int, float, str)) for a in nest.flatten((args, kwargs))):
      # With another value, another trace might need other records than those that wait.
      return None, "it has Python values among its arguments (give it tensors)"
    if len({id(i) for i in iterators}) > 1:
      return None, "it has several iterators among its arguments"
    return iterators[0], ""

  def _begin(self, iterator: iterator_ops.OwnedIterator, args: tuple[Any, ...], kwargs: dict[str, Any]):
    """Starts a stage for an iterator, and returns its entry."""
    trace = None
    try:
      division, values = self._divide(iterator, args, kwargs)
      self._check_no_other_reads(iterator)
      saved_iterator.end_holds()
      saved_iterator.end_holds_after_checkpoints(iterator, bool(division.random_states))
      stage = iterator_stage.IteratorStage(division, iterator, values, **self._options)
      why_not = ""
      if len(args) == 1 and not kwargs and not division.concrete.graph.deferred_external_captures:
        trace = division, _with_buffer(values, iterator, stage)
    except step_division.NotStagedError as error:
      stage, why_not = None, str(error)
    entry = weakref.ref(iterator), stage, why_not, trace
    self._stages[id(iterator)] = entry
    weakref.finalize(iterator, _forget, self._stages, id(iterator)).atexit = False
    return entry

  def _check_no_other_reads(self, iterator: iterator_ops.OwnedIterator) -> None:
    """Raises RuntimeError if another step reads ahead of itself what this one would read."""
    other = getattr(iterator, _READER, lambda: None)()
    if other is not None and other is not self and other.reads(iterator):
      raise RuntimeError(
          f"{other.__name__} has read elements of this iterator ahead, so {self.__name__} cannot use it. Give it an"
          " iterator of its own.")
    setattr(iterator, _READER, weakref.ref(self))

  def _divide(
      self, iterator: iterator_ops.OwnedIterator, args: tuple[Any, ...], kwargs: dict[str, Any]
  ) -> tuple[step_division.StepDivision, list[Any]]:
    """Returns the division of the trace for these arguments, and the values of the trace's inputs."""
    if not hasattr(self.step, "get_concrete_function"):
      raise step_division.NotStagedError("it is no tf.function, so it runs eagerly")
    if eager_function_run.RUN_FUNCTIONS_EAGERLY:
      raise step_division.NotStagedError("tf.config.run_functions_eagerly is on")
    if record.could_possibly_record():
      raise step_division.NotStagedError("a tf.GradientTape around the step records it")
    concrete = self.step.get_concrete_function(*args, **kwargs)
    arguments = _arguments(self.step, concrete, args, kwargs)
    values = [*arguments, *concrete.captured_inputs]
    key = id(concrete.graph)
    if key not in self._divisions:
      try:
        found = step_division.StepDivision(
            concrete, step_inputs.describe(concrete.graph, values, len(arguments), iterator))
      except step_division.NotStagedError as error:
        found = str(error)
      self._divisions[key] = concrete, found
    found = self._divisions[key][1]
    if isinstance(found, str):
      raise step_division.NotStagedError(found)
    changed = step_inputs.changed_by_step_and_read_by_dataset(concrete.graph, values, iterator)
    if changed is not None:
      raise step_division.NotStagedError(f"its data is made from '{changed}', which it changes")
    return found, values

  def _rest(self, stage: iterator_stage.IteratorStage, iterator: iterator_ops.OwnedIterator, args, kwargs):
    """Returns the division for these arguments, and the inputs of its rest. Other arguments may need another trace."""
    try:
      division, values = self._divide(iterator, args, kwargs)
    except step_division.NotStagedError as error:
      raise self._cannot_use(str(error)) from None
    if division is not stage.division and division.definition_ahead != stage.division.definition_ahead:
      raise RuntimeError(
          f"{self.__name__} has read elements of this iterator ahead, and with these arguments it needs other records."
          " Give it a new iterator.")
    return division, _with_buffer(values, iterator, stage)

  def _cannot_use(self, why: str) -> RuntimeError:
    return RuntimeError(
        f"{self.__name__} has read elements of this iterator ahead, and with these arguments it cannot use them: {why}."
        " Give it a new iterator.")

  def reads(self, iterator: Any) -> bool:
    """Returns whether elements of an iterator are read ahead."""
    known = self._stages.get(id(iterator))
    return known is not None and known[1] is not None

  def replace_step(self, step: Callable[..., Any]) -> None:
    """From here on calls another step. What was read ahead is used, if both need the same of it."""
    with self._lock:
      self.step = step
      for key, (iterator, stage, why_not, _) in list(self._stages.items()):
        if stage is not None:
          self._stages[key] = iterator, stage, why_not, None
        else:
          del self._stages[key]

  def stages(self) -> list[iterator_stage.IteratorStage]:
    """Returns the stages of the iterators that are alive."""
    return [entry[1] for entry in list(self._stages.values()) if entry[1] is not None]

  def stop(self) -> None:
    """Ends the threads, and drops the records that wait."""
    _stop_all(self._stages)


def _why_no_iterator(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
  if any(isinstance(a, distribute_types.DistributedIteratorInterface) for a in nest.flatten((args, kwargs))):
    return "its iterator belongs to a tf.distribute strategy"
  return "no argument is a tf.data.Iterator"


def _forget(stages: dict[int, Any], key: int) -> None:
  """Ends the stage of an iterator that has been deleted."""
  entry = stages.pop(key, None)
  if entry is not None and entry[1] is not None:
    entry[1].stop()


def _stop_all(stages: dict[int, Any]) -> None:
  while stages:
    _, entry = stages.popitem()
    if entry[1] is not None:
      entry[1].stop()


def _arguments(step: Any, concrete: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
  """Returns the flat arguments of a trace."""
  # As a tf.function does it.
  if hasattr(step, "_function_type"):
    bound = function_type_utils.canonicalize_function_inputs(
        args, kwargs, step._function_type, step._default_values, step._is_pure)  # pylint: disable=protected-access
    args, kwargs = bound.args, bound.kwargs
  return list(concrete.function_type.unpack_inputs(concrete.function_type.bind(*args, **kwargs)))


def _with_buffer(
    values: list[Any], iterator: iterator_ops.OwnedIterator, stage: iterator_stage.IteratorStage) -> list[Any]:
  return [stage.buffer if v is iterator._iterator_resource else v for v in values]  # pylint: disable=protected-access
