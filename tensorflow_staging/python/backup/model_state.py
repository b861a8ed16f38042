# SPDX-License-Identifier: Apache-2.0
"""What of a Keras model a backup has: its variables, those of its optimizer and metrics, and its random generators."""

from collections.abc import Callable
from typing import Any

from tensorflow.python.distribute import values as distributed
from tensorflow.python.ops import variables as variables_lib
from tensorflow.python.platform import tf_logging

from tensorflow_staging.python.ahead import function_library
from tensorflow_staging.python.ahead import keras_model
from tensorflow_staging.python.ahead import step_division
from tensorflow_staging.python.ahead import step_function

_DRAWS = (
    "'%s' draws random numbers with a seed of its own, which begin anew although the fit goes on: a backup has only"
    " random generators that are variables. In Keras 2, layers use these after"
    " tf.keras.backend.experimental.enable_tf_random_generator().")


def of_model(model: Any) -> dict[str, Any]:
  """Returns what to save of a model, by name, but for its metrics."""
  if keras_model.is_keras_2(model):
    return {"model": model, "train_counter": model._train_counter, "generators": _generators(model)}
  variables = [*model.variables, *getattr(model.optimizer, "variables", ())]
  return {"variables": _values(variables)}


def of_metrics(model: Any) -> list[Any]:
  """Returns the variables of the metrics of a model, which each epoch sets back."""
  return _parts(_values([variable for metric in model.metrics for variable in metric.variables]))


def of_replicas(model: Any) -> list[Any]:
  """Returns what differs from replica to replica of a strategy, but for metrics; nothing without a strategy.

  A checkpoint has one value of each variable, the mean or that of the first replica. To be read after `of_model`.
  """
  states = [generator.state for generator in _generators(model)] if keras_model.is_keras_2(model) else []
  # Moving averages and random states. Those that are trained are equal.
  values = _values([*model.non_trainable_variables, *states])
  return _parts([value for value in values if isinstance(value, distributed.DistributedVariable)])


def build(model: Any, new_iterator: Callable[[], Any]) -> None:
  """Makes the variables of a model, of its optimizer and of its metrics, as its first step would make them.

  Warns if the step draws random numbers that will not go on where a backup was written.

  Args:
    model: The model. In `fit`, its train function has been made.
    new_iterator: Returns an iterator of its data.
  """
  function = keras_model.traced_part(getattr(model.train_function, "plain", model.train_function))
  if not step_function.is_traced(step_function.of(function)):
    return
  try:
    # Nothing runs, and the first step uses the trace.
    concrete, _ = step_function.trace(function, (new_iterator(),), {})
  except step_function.MakesVariablesError:
    return  # What is missing is told when it is restored.
  draw = step_division.seeded_draw(function_library.library_of(concrete.function_def))
  if draw is not None:
    tf_logging.warning(_DRAWS, draw)


def _generators(model: Any) -> list[Any]:
  """Returns the random generators of the layers of a model of Keras 2, which a checkpoint of the model lacks."""
  owners = [getattr(layer, "_random_generator", None) for layer in model._flatten_layers()]
  return [generator for owner in owners if (generator := getattr(owner, "_generator", None)) is not None]


def _parts(values: list[Any]) -> list[Any]:
  """Returns variables, and those of each replica for variables of a strategy."""
  return [
      part for value in values
      for part in (value.values if isinstance(value, distributed.DistributedVariable) else [value])]


def _values(variables: list[Any]) -> list[Any]:
  """Returns TensorFlow's variables of Keras's, each once."""
  values = [each if isinstance(each, variables_lib.Variable) else each.value for each in variables]
  return list({id(value): value for value in values}.values())
