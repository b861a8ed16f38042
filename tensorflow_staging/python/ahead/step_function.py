# SPDX-License-Identifier: Apache-2.0
"""What a program gives `tf.staging.ahead` as a step: a traced function, perhaps with arguments bound to it."""

import functools
import types
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

from tensorflow.python.eager import lift_to_graph
from tensorflow.python.eager.polymorphic_function import concrete_function
from tensorflow.python.eager.polymorphic_function import function_type_utils
from tensorflow.python.framework import errors
from tensorflow.python.util import nest

from tensorflow_staging.python.ahead import step_division

# Why the call that makes the variables of a step has no stage.
FIRST_CALL = "its first call makes variables from the data"


class MakesVariablesError(Exception):
  """A function has variables whose first values need its arguments, so only a call can make them."""


class StepFunction(NamedTuple):
  """What is called, and what is bound to it.

  Attributes:
    function: A `tf.function`, a `ConcreteFunction`, or something else, which cannot be staged.
    args: The arguments before those of a call.
    kwargs: The keyword arguments that a call may replace.
  """

  function: Callable[..., Any]
  args: tuple[Any, ...] = ()
  kwargs: dict[str, Any] = {}


def of(step: Callable[..., Any]) -> StepFunction:
  """Takes a step out of what binds arguments to it: `functools.partial`, a bound method, a static method."""
  if isinstance(step, staticmethod):
    return of(step.__func__)
  if isinstance(step, functools.partial):
    inner = of(step.func)
    return StepFunction(inner.function, (*inner.args, *step.args), {**inner.kwargs, **step.keywords})
  if isinstance(step, types.MethodType) and is_traced(inner := of(step.__func__)):
    return StepFunction(inner.function, (*inner.args, step.__self__), inner.kwargs)
  return StepFunction(step)


def is_traced(step: StepFunction) -> bool:
  """Returns whether it has a graph, or makes one for its arguments."""
  return isinstance(step.function, concrete_function.ConcreteFunction) or hasattr(
      step.function, "get_concrete_function")


def trace(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[concrete_function.ConcreteFunction, list[Any]]:
  """Returns the trace of a function for some arguments, and the arguments as the trace takes them.

  The trace's graph notes whether it may have run before.

  Args:
    function: A `tf.function` or a `ConcreteFunction`.
    args: The arguments.
    kwargs: The keyword arguments.

  Raises:
    MakesVariablesError: If the function has to be called by `make_variables` first.
    NotStagedError: If a `ConcreteFunction` takes other arguments.
  """
  if isinstance(function, concrete_function.ConcreteFunction):
    _note_runs(function, True)
    return function, _of_concrete_function(function, args, kwargs)
  traces = function.experimental_get_tracing_count()
  try:
    concrete = function.get_concrete_function(*args, **kwargs)
  except lift_to_graph.UnliftableError as error:
    if not _has_traced_variables(function):
      raise
    raise MakesVariablesError from error
  _note_runs(concrete, function.experimental_get_tracing_count() == traces)
  return concrete, _flat_arguments(function, concrete, args, kwargs)


def captured(concrete: concrete_function.ConcreteFunction, num_arguments: int) -> list[Any]:
  """Returns what a trace has captured; in the place of what each call evaluates, a function that does.

  Each evaluation may count: the workers of a strategy number their messages by it, so that all have to make as many.

  Args:
    concrete: The trace.
    num_arguments: How many of its inputs are arguments.
  """
  values = concrete._captured_inputs  # pylint: disable=protected-access
  # What is evaluated may have several tensors.
  return list(values) if len(values) == len(concrete.inputs) - num_arguments else list(concrete.captured_inputs)


def evaluated(inputs: Sequence[Any]) -> list[Any]:
  """Returns the inputs of a call, with what it evaluates."""
  return nest.flatten([value() if callable(value) else value for value in inputs])


def make_variables(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
  """Makes the first call of a function for which `trace` has raised `MakesVariablesError`; returns what that returns.

  As in a call of a new `tf.function`, the trace that makes the variables runs, and initializes each of them where it
  is made. All later calls have a trace that makes none.
  """
  # pylint: disable=protected-access
  if function._jit_compile:
    raise errors.UnimplementedError(
        None, None,
        f"'{function.__name__}' has jit_compile=True and makes variables from its data, which XLA cannot compile. Make"
        " the variables before the first step.")
  concrete = function._concrete_variable_creation_fn
  return concrete._call_flat(_flat_arguments(function, concrete, args, kwargs), concrete.captured_inputs)


def _has_traced_variables(function: Any) -> bool:
  """Returns whether a function has a trace that makes variables, so the error was that their values need more."""
  # pylint: disable=protected-access
  return bool(getattr(function, "_created_variables", None)) and hasattr(function, "_concrete_variable_creation_fn")


def _note_runs(concrete: concrete_function.ConcreteFunction, may_have_run: bool) -> None:
  if not hasattr(concrete.graph, "_staging_has_run"):
    concrete.graph._staging_has_run = may_have_run  # pylint: disable=protected-access


def _of_concrete_function(
    function: concrete_function.ConcreteFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
  if function.function_type is None:
    raise step_division.NotStagedError("it is a ConcreteFunction that takes only tensors")
  try:
    bound = function_type_utils.canonicalize_function_inputs(args, kwargs, function.function_type)
    return list(function.function_type.unpack_inputs(bound))
  except (TypeError, ValueError) as error:
    # The call without a stage raises its own error, unless the arguments are those of its graph.
    raise step_division.NotStagedError("it is a ConcreteFunction of other arguments") from error


def _flat_arguments(
    function: Any, concrete: concrete_function.ConcreteFunction, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Any]:
  # As a tf.function does it.
  if hasattr(function, "_function_type"):
    bound = function_type_utils.canonicalize_function_inputs(
        args, kwargs, function._function_type, function._default_values, function._is_pure)  # pylint: disable=protected-access
    args, kwargs = bound.args, bound.kwargs
  return list(concrete.function_type.unpack_inputs(concrete.function_type.bind(*args, **kwargs)))
