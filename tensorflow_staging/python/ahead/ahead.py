# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.ahead`: runs the part of a `tf.function` step that needs no variable ahead of it."""

import functools
import os
import threading
import types
import weakref
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import Optional
from typing import Union

from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.eager import context
from tensorflow.python.eager import record
from tensorflow.python.eager.polymorphic_function import eager_function_run
from tensorflow.python.framework import errors
from tensorflow.python.framework import ops
from tensorflow.python.platform import tf_logging
from tensorflow.python.util import nest
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import api_name
from tensorflow_staging.python import compat
from tensorflow_staging.python import uncalled
from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.ahead import bound_steps
from tensorflow_staging.python.ahead import dataset_state
from tensorflow_staging.python.ahead import eager_mode
from tensorflow_staging.python.ahead import forked_child
from tensorflow_staging.python.ahead import host_moves
from tensorflow_staging.python.ahead import iterator_counts
from tensorflow_staging.python.ahead import iterator_stage
from tensorflow_staging.python.ahead import step_division
from tensorflow_staging.python.ahead import step_function
from tensorflow_staging.python.ahead import step_inputs
from tensorflow_staging.python.ahead import step_report
from tensorflow_staging.python.ahead import strategy_iterators
from tensorflow_staging.python.automatic import eager_programs  # noqa: F401  # Speaks at the end of a program.
from tensorflow_staging.python.automatic import setting
from tensorflow_staging.python.pywrap import _pywrap_staging
from tensorflow_staging.python.stages import argument_checks

_A_STEP = f"A step of {api_name.API}.ahead"

_ASYNCHRONOUS = "TensorFlow runs its ops asynchronously, after tf.config.experimental.set_synchronous_execution(False)"
# Of each call of Keras's `train_on_batch`, for example.
_ONE_ELEMENT = "its data has one element, so there is nothing to read ahead"

_UNSTAGED = "runs without a stage"

# The types of most arguments beside an iterator.
_NO_ITERATORS = (ops.EagerTensor, int, float, str, type(None))

# The attribute of an iterator that refers to the step that reads it ahead.
_READER = "_staging_reader"
# That which counts how often a stage of it has ended soon, because a call needed other records; and how often it may.
_TURNS = "_staging_turns"
_MOST_TURNS = 3
# All of them.
_steps: "weakref.WeakSet[AheadStep]" = weakref.WeakSet()

# So many counts of stages that have ended become one sum.
_MOST_COUNTS = 100


@tf_export("staging.ahead")
def ahead(
    step: Callable[..., Any],
    capacity: int = vocabulary.AUTOTUNE,
    num_threads: Optional[int] = None,
    *,
    capacity_bytes: int = 0,
    device_capacity_bytes: int = 0,
    name: Optional[str] = None,
    python_ahead: bool = False,
) -> "AheadStep":
  """Returns a step that runs its input ahead: what it computes of its data without a variable.

  `step` is a `tf.function` with one or more `tf.data.Iterator`s among its arguments, which it reads with `next`. The
  result is called as `step` is, and returns what it returns. While one step trains, threads prepare the records of the
  next steps: strings are split and hashed, looked up in tables that do not change, and images augmented.

  It also decorates methods, above `@tf.function`: each object has a step of its own. Other attributes are those of
  `step`.

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

  A record is what one step reads, of one iterator or of several. Each is used once, in order with one thread. An error
  comes after as many steps as without a stage, and the next step goes on with the next element. The threads of an
  iterator end when it is deleted, when the step is, and when the program ends. A step of which nothing can run ahead is
  called as it is; a warning in one line says why, and `tf.staging.explain(step)` says more.

  Args:
    step: The step, a `tf.function`, one of its `ConcreteFunction`s, or a `functools.partial` of either.
    capacity: How many records may wait, at least 1, or `tf.data.AUTOTUNE`.
    num_threads: How many threads prepare records, at least 1, or `tf.data.AUTOTUNE`. Whatever their number, records
      come in the order of the data, with the random numbers that one thread draws. None stands for `tf.data.AUTOTUNE`,
      but for 1 if what runs ahead calls Python functions: they may not expect to be called by several threads.
    capacity_bytes: How many bytes the waiting records may take in host memory; 0 sets no bound, or 512 MiB if
      `capacity` is `tf.data.AUTOTUNE`.
    device_capacity_bytes: The same for the memory of each GPU to which records are copied.
    name: The name of the stage. None stands for the name of `step`.
    python_ahead: Whether `tf.py_function`, and `tf.numpy_function` unless it has `stateful=False`, may run ahead, too.
      There they see the variables, objects and random generators of Python as they are up to `capacity` records before
      their step, and so may give other values.

  Returns:
    A callable. Its `why_not` says why the latest step was called as it is; None if it was not.

  Raises:
    TypeError: If `step` cannot be called, or an argument has the wrong type.
    ValueError: If an argument is out of range.
  """
  uncalled.check(step)
  if not callable(step):
    raise TypeError(f"step must be a tf.function, got {step!r} of type {type(step).__name__}.{_hint_for(step)}")
  inner = step_function.of(step).function
  if isinstance(inner, AheadStep):
    raise TypeError(f"step must be a tf.function, got '{inner.__name__}', which {api_name.API}.ahead has returned.")
  check_options(capacity, num_threads, capacity_bytes, device_capacity_bytes, python_ahead)
  argument_checks.check_name(name)
  return AheadStep(
      step, capacity, num_threads, capacity_bytes, device_capacity_bytes, name or getattr(step, "__name__", "step"),
      python_ahead)


def check_options(
    capacity: int, num_threads: Optional[int], capacity_bytes: int, device_capacity_bytes: int,
    python_ahead: bool = False) -> None:
  """Raises an error if an argument of `tf.staging.ahead` has the wrong type or is out of range."""
  argument_checks.check_int("capacity", capacity, minimum=1, autotune=True)
  if num_threads is not None:
    argument_checks.check_int("num_threads", num_threads, minimum=1, maximum=vocabulary.MAX_THREADS, autotune=True)
  for name, value in (("capacity_bytes", capacity_bytes), ("device_capacity_bytes", device_capacity_bytes)):
    argument_checks.check_int(name, value, minimum=0, maximum=argument_checks.INT64_MAX)
  argument_checks.check_bool("python_ahead", python_ahead)


def _hint_for(step: Any) -> str:
  return f" Put @classmethod above @{api_name.API}.ahead." if isinstance(step, classmethod) else ""


class _NotThisCallError(step_division.NotStagedError):
  """A call has no stage for a reason that a later one need not have."""


class AheadStep:
  """A step whose input runs ahead; see `tf.staging.ahead`.

  Attributes:
    step: The step as the program made it.
    why_not: Why the latest step was called as it is, or why its stage reads nothing ahead; None if neither. Once there
      was a stage, calls with data of one element do not count.
  """

  def __init__(
      self, step: Callable[..., Any], capacity: int, num_threads: Optional[int], capacity_bytes: int,
      device_capacity_bytes: int, name: str, python_ahead: bool = False,
      warn: Callable[[str], None] = tf_logging.warning):
    self.step = step
    self._function = step_function.of(step)
    # The steps of the objects of a class of which this is a method.
    self._bound = bound_steps.BoundSteps()
    self.why_not: Optional[str] = None
    # What is called where there is no stage, instead of the step; for one that XLA compiles only with a stage.
    self.unstaged: Optional[Callable[..., Any]] = None
    self._options = {
        "name": name, "capacity": capacity, "capacity_bytes": capacity_bytes,
        "device_capacity_bytes": device_capacity_bytes}
    self._num_threads = num_threads
    self._python_ahead = python_ahead
    # By whether they tune the number of threads. All iterators share them: what the stage of one has found serves the
    # next.
    self._tunings = {tunes: _pywrap_staging.StageTuning(tunes_threads=tunes) for tunes in (False, True)}
    self._warn = warn
    # The reasons of which nobody has to be warned, or has been.
    self._told = {_ONE_ELEMENT}
    # Why a call without an iterator has no stage, once there was one.
    self._without_iterator: Optional[str] = None
    self._lock = threading.RLock()
    # Whether a call is dividing the step and starting a stage.
    self._begins = False  # Guarded by _lock.
    # By the id of a trace: its division, or why it has none.
    self._divisions = {}
    # By the ids of the iterators of a call: their stage and why they have none, and the trace that the call needs, if
    # the arguments are only an iterator.
    self._stages = {}
    # The keys whose iterators end their stage with themselves.
    self._watched = set()
    # By the keys of stages of the step before, which may have other records than this one needs: what `expect` was told
    # since then, in a list.
    self._unchecked: dict[tuple[int, ...], list[Optional[int]]] = {}
    # The ids of states of random generators from which something else draws by turns with this step.
    self._drawn_elsewhere = set()
    # Whether a division of it has drawn with seeds.
    self._draws_with_seeds = False
    # How many calls a new iterator is for; None if that is not known. By the key of a stage that has ended within them:
    # how many are left.
    self.limit: Optional[int] = None
    self._limits: dict[tuple[int, ...], Optional[int]] = {}
    # What the stages that have ended had counted.
    self._ended: list[iterator_counts.IteratorCounts] = []
    # The end of an iterator, or of this step, ends the threads.
    weakref.finalize(self, _stop_all, self._stages, self._ended).atexit = False
    functools.update_wrapper(
        self, self._function.function, assigned=("__module__", "__qualname__", "__doc__"), updated=())
    self.__name__ = name
    _steps.add(self)

  def __get__(self, instance: Any, owner: Optional[type] = None) -> "AheadStep":
    """Returns the step of an object of which this is a method."""
    if instance is None or isinstance(self.step, staticmethod) or not hasattr(self.step, "__get__"):
      return self
    bound = self.step.__get__(instance, owner)
    if isinstance(bound, types.MethodType):
      # It keeps the object alive, so it must not stay here.
      step = self._with_step(bound)
      step._told = self._told
      return step
    return self._bound.of(instance, lambda: self._with_step(bound))

  def __getattr__(self, name: str) -> Any:
    """Returns an attribute of the program's step, such as `python_function`."""
    if name.startswith("_") or name == "step":
      raise AttributeError(f"{_A_STEP} has no attribute {name!r}.")
    try:
      return getattr(self.step, name)
    except AttributeError as error:
      raise AttributeError(f"{_A_STEP} has no attribute {name!r}, and {error}.") from None

  def __reduce__(self) -> tuple[Any, ...]:
    """Makes copies, which have stages of their own."""
    return AheadStep, (self.step, *self._arguments())

  def _with_step(self, step: Callable[..., Any]) -> "AheadStep":
    return AheadStep(step, *self._arguments(), self._warn)

  def _arguments(self) -> tuple[Any, ...]:
    options = self._options
    return (
        options["capacity"], self._num_threads, options["capacity_bytes"], options["device_capacity_bytes"],
        options["name"], self._python_ahead)

  def __call__(self, *args, **kwargs) -> Any:
    if not context.executing_eagerly():
      eager_mode.raise_if_off(_A_STEP)
      return self.step(*args, **kwargs)  # A part of another function.
    function = self._function
    if function.args or function.kwargs:
      args, kwargs = (*function.args, *args), {**function.kwargs, **kwargs}
    return self._call(args, kwargs)

  def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
      iterators = self._iterators_of(args, kwargs)
    except step_function.MakesVariablesError:
      return self._make_variables(args, kwargs)
    if isinstance(iterators, str):
      return self._call_unstaged(iterators, args, kwargs)
    key = tuple([id(i) for i in iterators])
    while True:
      known = self._stages.get(key)
      if known is None:
        try:
          with self._lock:
            known = self._stages.get(key) or self._begin(iterators, args, kwargs)
        except step_function.MakesVariablesError:
          return self._make_variables(args, kwargs)
        except _NotThisCallError as error:
          return self._call_unstaged(str(error), args, kwargs)
      stage, why_not, trace = known
      if stage is None:
        return self._call_unstaged(why_not, args, kwargs)
      if (trace is None or kwargs or not _is_only_iterator(args) or record.could_possibly_record()
          or eager_function_run.RUN_FUNCTIONS_EAGERLY or context.is_async()):
        try:
          trace = self._trace_for(stage, iterators, args, kwargs)
        except step_function.MakesVariablesError:
          return self._make_variables(args, kwargs)
        except _NotThisCallError as error:
          return self._call_unstaged(str(error), args, kwargs)
      if trace is not None and (not stage.draws or self._draws_go_on(stage, iterators)):
        break
      # The stage has ended.
    self.why_not = why_not or None
    division, inputs = trace
    if division.seeded_draw and not division.keeps_draws:
      self._keep_draws(division)
    try:
      if division.has_late_inputs:
        inputs = step_function.evaluated(inputs)
      outputs = compat.call_with_tensors(division.rest, inputs)
    except errors.OpError:
      stage.on_error()
      raise
    if division.destinations is None:
      division.destinations = stage.destinations()
    return outputs

  def _make_variables(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    self.why_not = step_function.FIRST_CALL
    return step_function.make_variables(self._function.function, args, kwargs)

  def _call_unstaged(self, why_not: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    self.note_unstaged(why_not)
    return (self.unstaged or self._function.function)(*args, **kwargs)

  def note_unstaged(self, why_not: str) -> None:
    """Notes why a call has no stage, and warns of it once."""
    # Single batches beside a stage, as of `train_on_batch` in a `fit`, say nothing about the other calls.
    if why_not != _ONE_ELEMENT or not (self._ended or self.stages()):
      self.why_not = why_not
    self._tell(_UNSTAGED, why_not)

  def _tell(self, what: str, why: str) -> None:
    line = why if what == _UNSTAGED else f"{what}: {why}"
    if line not in self._told:
      self._told.add(line)
      self._warn(f"{self.__name__} {what}: {why}.")

  def _keep_draws(self, division: step_division.StepDivision) -> None:
    """Notes that a division draws with seeds, so that its trace must not run otherwise from here on."""
    division.keep_draws()
    self._draws_with_seeds = True
    # The next calls for iterators that have no stage may be of this trace.
    for key, (stage, _, _) in list(self._stages.items()):
      if stage is None:
        self._stages.pop(key, None)

  def _iterators_of(
      self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Union[list[iterator_ops.OwnedIterator], str]:
    """Returns the iterators among the arguments, or why there is no stage for them."""
    if len(args) == 1 and not kwargs and isinstance(args[0], iterator_ops.OwnedIterator):
      return [args[0]]
    read = {id(a): a for a in nest.flatten((args, kwargs)) if _is_iterator(a)}.values()
    if not read:
      return self._without_iterator or self._say_without_iterator(args, kwargs)
    if why_not := next(filter(None, map(strategy_iterators.why_not_read, read)), ""):
      return why_not
    elsewhere = [value for value in read if not strategy_iterators.are_on_host(value)]
    why_not = self._move_to_host(elsewhere, read, args, kwargs) if elsewhere else ""
    return why_not or _owned_iterators(read)

  def _move_to_host(
      self, elsewhere: list[Any], read: Collection[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Lets those of the iterators `read` that are `elsewhere` yield their elements on the host, or says why not."""

    def divide() -> None:
      iterators = _owned_iterators(read)
      try:
        self._divide(iterators, args, kwargs)
      except step_function.MakesVariablesError:
        # The call that makes them reads the host as well.
        self._limits[tuple([id(i) for i in iterators])] = None if self.limit is None else 0
        raise

    with self._lock:
      return host_moves.move_if_divisible(elsewhere, divide)

  def _say_without_iterator(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    kinds = [type(a).__name__ for a in args] + [f"{key}={type(a).__name__}" for key, a in kwargs.items()]
    given = f"only {', '.join(kinds)}" if kinds else "and it has none"
    self._without_iterator = (
        f"no argument is a tf.data.Iterator, as iter(dataset) returns, {given}")
    return self._without_iterator

  def _begin(self, iterators: list[iterator_ops.OwnedIterator], args: tuple[Any, ...], kwargs: dict[str, Any]):
    """Returns the entry for the iterators of a call, which has a stage that it starts unless there is none."""
    if self._begins:
      # A signal handler calls it, say. Of two stages of an iterator, one would give back what comes before what the
      # other has read.
      return None, "it was called while a stage of it began, as by a signal handler", None
    self._begins = True
    try:
      return self._begin_stage(iterators, args, kwargs)
    finally:
      self._begins = False

  def _begin_stage(self, iterators: list[iterator_ops.OwnedIterator], args: tuple[Any, ...], kwargs: dict[str, Any]):
    _raise_if_not_this_call()
    trace = None
    key = tuple([id(i) for i in iterators])
    for iterator in iterators:
      self._take_over(iterator, key)
    limit = self._limits.pop(key, self.limit)
    try:
      division, values = self._divide(iterators, args, kwargs)
      why_not = self._why_not_ahead(division, values, iterators)
      if why_not:
        if not division.keeps_draws:
          self._leave_to_trace(division)
          raise step_division.NotStagedError(why_not)
        # Its seeded draws go on only in the same function, which gets records that are made when a step asks for them.
        self._tell("reads nothing ahead", why_not)
      num_threads = self._num_threads
      if num_threads is None:
        num_threads = 1 if division.calls_python else vocabulary.AUTOTUNE
      stage = iterator_stage.IteratorStage(
          division, iterators, values, limit=limit, reads_ahead=not why_not, num_threads=num_threads,
          tuning=self._tunings[num_threads == vocabulary.AUTOTUNE], **self._options)
      if _is_only_iterator(args) and not kwargs:
        trace = division, _with_buffer(values, division, stage)
    except step_division.NotStagedError as error:
      if self._draws_with_seeds:
        if key in self._watched:
          self._limits[key] = limit
        # The next call for these iterators may be of a trace that must not run otherwise.
        return None, str(error), None
      stage, why_not = None, str(error)
    except step_function.MakesVariablesError:
      # How many elements the call reads that makes them is not known, so nothing is read that might be one too many.
      self._limits[key] = None if limit is None else 0
      raise
    entry = stage, why_not, trace
    if key not in self._watched:
      self._watched.add(key)
      for iterator in iterators:
        weakref.finalize(
            iterator, _forget, key, self._stages, self._watched, self._limits, self._ended).atexit = False
    self._stages[key] = entry
    return entry

  def _why_not_ahead(
      self, division: step_division.StepDivision, values: Sequence[Any],
      iterators: list[iterator_ops.OwnedIterator]) -> str:
    """Returns why nothing of the iterators may be read ahead for a division that the step has; "" if it may."""
    read = dataset_state.changing_state_read(iterators)
    if read is not None:
      return f"its data is made from {read}, which may change meanwhile; {_instead_of(read)}"
    if any(getattr(iterator, _TURNS, 0) > _MOST_TURNS for iterator in iterators):
      return "calls that need different records read its iterator by turns"
    if any(id(values[i]) in self._drawn_elsewhere for i, _ in division.random_states):
      return "something else draws from its random generator by turns with it"
    if not division.is_needed and all(strategy_iterators.has_one_element(iterator) for iterator in iterators):
      return _ONE_ELEMENT
    return ""

  def _take_over(self, iterator: iterator_ops.OwnedIterator, key: tuple[int, ...]) -> None:
    """Ends what else reads ahead of itself what a call for `key` reads."""
    other = getattr(iterator, _READER, lambda: None)()
    if other is not None:
      other.release(iterator, but_not_for=key if other is self else None)
    setattr(iterator, _READER, weakref.ref(self))

  def _divide(
      self, iterators: list[iterator_ops.OwnedIterator], args: tuple[Any, ...], kwargs: dict[str, Any]
  ) -> tuple[step_division.StepDivision, list[Any]]:
    """Returns the division of the trace for these arguments, and the values of the trace's inputs."""
    _raise_if_not_this_call()
    if not step_function.is_traced(self._function):
      raise step_division.NotStagedError("it is no tf.function, so it runs eagerly")
    if setting.current() == setting.Setting.OFF:
      raise step_division.NotStagedError(f"{setting.VARIABLE}=off")
    forked_child.raise_if_it_lacks_threads(self.__name__)
    concrete, arguments = step_function.trace(self._function.function, args, kwargs)
    values = [*arguments, *step_function.captured(concrete, len(arguments))]
    key = id(concrete.graph)
    if key not in self._divisions:
      try:
        found = step_division.divide(
            concrete,
            step_inputs.describe(concrete.graph, values, len(arguments), iterators, self._drawn_elsewhere),
            self._python_ahead, strategy_iterators.host_of(iterators))
        if found.seeded_draw is not None and concrete.graph._staging_has_run:  # pylint: disable=protected-access
          found = f"'{found.seeded_draw}' draws with a seed of its own, and has drawn without a stage before"
        elif found.seeded_draw is not None and (drawn := step_division.that_keeps_draws(concrete)) is not None:
          found = drawn
          self._draws_with_seeds = True
      except step_division.NotStagedError as error:
        found = str(error)
      self._divisions[key] = concrete, found
    found = self._divisions[key][1]
    if isinstance(found, str):
      raise step_division.NotStagedError(found)
    changed = dataset_state.changed_by_step(concrete.graph, values, found.changes, iterators)
    if changed is not None:
      self._leave_to_trace(found)
      raise step_division.NotStagedError(f"its data is made from '{changed}', which it changes")
    return found, values

  def _leave_to_trace(self, division: step_division.StepDivision) -> None:
    """Notes that a trace runs without a stage; so it must from here on, if it draws with seeds."""
    if division.seeded_draw is None or division.keeps_draws:
      return
    graph = division.concrete.graph
    graph._staging_has_run = True  # pylint: disable=protected-access
    self._divisions.pop(id(graph), None)

  def _trace_for(self, stage: iterator_stage.IteratorStage, iterators: list[iterator_ops.OwnedIterator], args, kwargs):
    """Returns the division for these arguments and the inputs of its rest; None if it has ended the stage for that."""
    _raise_if_not_this_call()
    key = tuple([id(i) for i in iterators])
    # Other arguments, or another step, may need another trace.
    expected = self._unchecked.pop(key, None)
    try:
      division, values = self._divide(iterators, args, kwargs)
      if stage.makes_records_of(division, values):
        if expected:
          stage.set_limit(expected[-1])
        return division, _with_buffer(values, division, stage)
    except step_division.NotStagedError:
      pass  # The next try says it.
    except step_function.MakesVariablesError:
      self._end(key, stage, iterators)
      if self._limits.get(key) is not None:
        self._limits[key] = 0
      raise
    self._end(key, stage, iterators)
    if expected:
      self._limits[key] = expected[-1]
    return None

  def _draws_go_on(self, stage: iterator_stage.IteratorStage, iterators: list[iterator_ops.OwnedIterator]) -> bool:
    """Returns whether what waits was drawn from the program's random generators as they are. If not, ends the stage.

    Something else may have drawn from the generators, or have set them.
    """
    changed = stage.find_changed_state()
    if changed is None:
      return True
    if not stage.reads_ahead:
      stage.draw_on()
      return True
    if stage.is_new:
      # Something else draws by turns with the step, so its draws stay there. A trace that must not be divided anew
      # makes them when the step asks for them.
      self._drawn_elsewhere.add(changed)
      self._divisions = {
          key: (trace, found) for key, (trace, found) in self._divisions.items()
          if not isinstance(found, str) and found.keeps_draws}
    self._end(tuple([id(i) for i in iterators]), stage, iterators)
    return False

  def _end(
      self, key: tuple[int, ...], stage: iterator_stage.IteratorStage,
      iterators: list[iterator_ops.OwnedIterator]) -> None:
    """Ends a stage because a call needs other records."""
    ends_soon, limit = stage.is_new, stage.limit
    if not stage.begins_to_end():
      return  # Another thread sees to it.
    self._limits[key] = limit
    self._stages.pop(key, None)
    stage.stop_reading_ahead()
    _count(stage, self._ended)
    if ends_soon:
      for iterator in iterators:
        setattr(iterator, _TURNS, getattr(iterator, _TURNS, 0) + 1)

  def release(self, iterator: iterator_ops.OwnedIterator, but_not_for: Optional[tuple[int, ...]]) -> None:
    """Ends the stages that read an iterator ahead.

    Args:
      iterator: The iterator.
      but_not_for: The ids of the iterators of the calls whose stage goes on.
    """
    for key, entry in list(self._stages.items()):
      if id(iterator) in key and key != but_not_for and entry[0] is not None:
        self._end(key, entry[0], [iterator])

  def expect(self, steps: Optional[int]) -> None:
    """From here on reads ahead what so many more calls for each iterator need, and nothing more; None: any number."""
    self.limit = steps
    self._limits.clear()
    for key, entry in list(self._stages.items()):
      if key in self._unchecked:
        self._unchecked[key].append(steps)
      elif entry[0] is not None:
        entry[0].set_limit(steps)

  def replace_step(self, step: Callable[..., Any]) -> None:
    """From here on calls another step. What was read ahead is used, if both need the same of it."""
    with self._lock:
      self.step = step
      self._function = step_function.of(step)
      self._divisions.clear()
      for key, (stage, why_not, _) in list(self._stages.items()):
        if stage is not None:
          self._stages[key] = stage, why_not, None
          self._unchecked[key] = []
        else:
          del self._stages[key]

  def report(self) -> step_report.StepReport:
    """Returns what runs ahead, for each trace with which the step was called."""
    steps = [
        step_report.DividedStep(self.__name__, found) if isinstance(found, str) else step_report.divided_step(
            self.__name__, found)
        for _, found in list(self._divisions.values())
    ]
    if not steps and self.why_not is not None:
      steps = [step_report.DividedStep(self.__name__, self.why_not)]
    return step_report.StepReport(tuple(steps))

  def draws_with_seeds(self) -> bool:
    """Returns whether draws of the step would not go on if it were called without this object."""
    return any(
        not isinstance(found, str) and found.seeded_draw is not None for _, found in list(self._divisions.values()))

  def stages(self) -> list[iterator_stage.IteratorStage]:
    """Returns the stages of the iterators that are alive."""
    return [entry[0] for entry in list(self._stages.values()) if entry[0] is not None]

  def counts(self) -> Optional[iterator_counts.IteratorCounts]:
    """Returns what its stages have counted in all, those that have ended included; None if there was none."""
    counts = [*self._ended, *(stage.counts() for stage in self.stages())]
    return iterator_counts.in_all(counts) if counts else None

  def why_no_stage(self) -> str:
    """Returns why no stage runs, as the end of a sentence."""
    if self.why_not is not None:
      return self.why_not
    return "no step has run" if self.counts() is None else "those of its iterators have ended"

  def count_anew(self) -> None:
    """From here on counts what stages do that begin now."""
    self._ended.clear()

  def stop(self) -> None:
    """Ends the threads. What they have read and no step has used comes next for whoever reads the iterators."""
    _stop_all(self._stages, self._ended)

  def abandon(self) -> None:
    """In a forked child process, forgets the stages of its parent, without a call of any of them."""
    # A thread that the child lacks may hold the lock.
    self._lock = threading.RLock()
    self._begins = False
    for of_stages in (self._stages, self._watched, self._unchecked, self._limits, self._ended):
      of_stages.clear()


class OwnsSteps:
  """Calls steps for a program, as the Keras callback does."""

  def steps(self) -> list[AheadStep]:
    """Returns the steps that it has called, or calls."""
    raise NotImplementedError

  def why_no_stage(self) -> str:
    """Returns why none of them has had a stage, as the end of a sentence."""
    raise NotImplementedError


def _raise_if_not_this_call() -> None:
  """Raises an error if a call has no stage for a reason that a later one need not have."""
  if eager_function_run.RUN_FUNCTIONS_EAGERLY:
    raise _NotThisCallError("tf.config.run_functions_eagerly is on")
  if context.is_async():
    raise _NotThisCallError(_ASYNCHRONOUS)
  if record.could_possibly_record():
    raise _NotThisCallError("a tf.GradientTape around the step records it")


def _instead_of(read: str) -> str:
  """Returns what data may use that is made from something that may change."""
  if read == "a table":
    return "if it does not, use a tf.lookup.StaticHashTable"
  return "if it does not, let the dataset use its value, as tf.convert_to_tensor returns it"


def _is_only_iterator(args: tuple[Any, ...]) -> bool:
  return len(args) == 1 and _is_iterator(args[0])


def _is_iterator(value: Any) -> bool:
  if isinstance(value, _NO_ITERATORS):
    return False  # Sooner than one of Python's abstract classes says it.
  return isinstance(value, iterator_ops.OwnedIterator) or strategy_iterators.is_distributed(value)


def _owned_iterators(read: Iterable[Any]) -> list[iterator_ops.OwnedIterator]:
  return [iterator for value in read for iterator in strategy_iterators.owned_iterators(value)]


def _forget(
    key: tuple[int, ...], stages: dict[tuple[int, ...], Any], watched: set[tuple[int, ...]],
    limits: dict[tuple[int, ...], Any], ended: list[iterator_counts.IteratorCounts]) -> None:
  """Ends the stage of an iterator that has been deleted, whose id another may have now."""
  watched.discard(key)
  limits.pop(key, None)
  entry = stages.pop(key, None)
  if entry is not None and entry[0] is not None:
    _stop(entry[0], ended)


def _stop_all(stages: dict[tuple[int, ...], Any], ended: list[iterator_counts.IteratorCounts]) -> None:
  for key in list(stages):
    # The end of an iterator, or a signal handler, may have taken it meanwhile.
    entry = stages.pop(key, None)
    if entry is not None and entry[0] is not None:
      _stop(entry[0], ended)


def _stop(stage: iterator_stage.IteratorStage, ended: list[iterator_counts.IteratorCounts]) -> None:
  stage.stop()
  _count(stage, ended)


def _count(stage: iterator_stage.IteratorStage, ended: list[iterator_counts.IteratorCounts]) -> None:
  # The collector of garbage may call this at any place, so only what a list does at once is safe.
  ended.append(stage.counts())
  if (several := len(ended)) >= _MOST_COUNTS:
    ended[:several] = [iterator_counts.in_all(ended[:several])]


def _with_buffer(
    values: list[Any], division: step_division.StepDivision, stage: iterator_stage.IteratorStage) -> list[Any]:
  values = list(values)
  values[division.buffer_input] = stage.buffer
  return values


def _abandon() -> None:
  for step in list(_steps):
    step.abandon()


# After that of the stages, which keeps them from being destroyed.
os.register_at_fork(after_in_child=_abandon)
