# SPDX-License-Identifier: Apache-2.0
"""What the callback `tf.staging.SmartStage` has to know of a model, which differs between Keras 2 and Keras 3."""

import importlib
import types
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import Optional

from tensorflow.python.data.ops import optional_ops
from tensorflow.python.eager import def_function
from tensorflow.python.framework import config
from tensorflow.python.framework import constant_op
from tensorflow.python.ops import cond
from tensorflow.python.ops import math_ops
from tensorflow.python.ops import while_loop
from tensorflow.python.util import nest

from tensorflow_staging.python.ahead import keras_compile

# The train and test function of Keras 3 is a Python function that calls this `tf.function` of its closure, which reads
# the iterator and calls that one.
_TRACED = "multi_step_on_iterator"
_ONE_STEP = "one_step_on_data"


def traced_part(function: Callable[..., Any]) -> Callable[..., Any]:
  """Returns the part of a model's train or test function that reads the iterator: in Keras 2, all of it."""
  index = _index_of(_TRACED, function)
  return function if index is None else function.__closure__[index].cell_contents


def with_traced_part(function: Callable[..., Any], step: Callable[..., Any]) -> Callable[..., Any]:
  """Returns a model's train or test function with another one in the place of its traced part."""
  index = _index_of(_TRACED, function)
  if index is None:
    return step
  cells = list(function.__closure__)
  cells[index] = types.CellType(step)
  return types.FunctionType(
      function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(cells))


def _index_of(variable: str, function: Callable[..., Any]) -> Optional[int]:
  names = getattr(getattr(function, "__code__", None), "co_freevars", ())
  return names.index(variable) if variable in names else None


def calls_several_steps(model: Any, function: Callable[..., Any]) -> bool:
  """Returns whether a call of a function of Keras 3 is several steps, as with `steps_per_execution`."""
  return _index_of(_TRACED, function) is not None and model.steps_per_execution > 1


def several_steps(function: Callable[..., Any], most: int) -> Callable[..., Any]:
  """Returns a `tf.function` that stands for the traced part of a function of Keras 3 that makes several steps.

  Keras's own one reads each element in the step before, so what uses an element is not where it is read. This one makes
  the same steps, and its result is that of the last step, too: an Optional, without a value if there was no element.

  Args:
    function: The function of Keras.
    most: How many steps a call makes if the data does not end.
  """
  one_step = function.__closure__[_index_of(_ONE_STEP, function)].cell_contents

  def several_steps_on_iterator(iterator: Any) -> Any:
    # What a step returns is known once it has been traced.
    none = optional_ops.Optional.empty(None)

    def next_step(done: Any, _: Any, outputs: Any) -> tuple[Any, Any, Any]:
      element = iterator.get_next_as_optional()
      has_element = element.has_value()

      def train() -> Any:
        result = optional_ops.Optional.from_value(one_step(element.get_value()))
        none._element_spec = result.element_spec  # pylint: disable=protected-access
        return result

      def keep() -> Any:
        outputs._element_spec = none._element_spec  # pylint: disable=protected-access
        return outputs

      return done + 1, has_element, cond.cond(has_element, train, keep)

    _, _, outputs = while_loop.while_loop(
        lambda done, goes_on, _: math_ops.logical_and(goes_on, done < most), next_step,
        (constant_op.constant(0), constant_op.constant(True), none))
    outputs._element_spec = none.element_spec  # pylint: disable=protected-access
    return outputs

  return def_function.function(several_steps_on_iterator, reduce_retracing=True, autograph=False)


def joined(results: Sequence[Any]) -> Any:
  """Returns what Keras 3 makes of the results of a call's steps: the predictions of all their elements."""
  concat = importlib.import_module("keras.src.backend.tensorflow.trainer").concat
  return nest.map_structure(lambda *parts: concat(parts), *results) if len(results) > 1 else results[0]


def gets_elements(model: Any, attribute: str) -> bool:
  """Returns whether a model's function takes elements, and no iterator: that of Keras 3's `predict`."""
  return attribute == "predict_function" and not is_keras_2(model)


def compiled_by_xla(model: Any, attribute: str) -> Optional[Callable[..., Any]]:
  """Returns a model's function compiled by XLA if `compile` has asked for that; None if it is not, or is so already.

  Keras 3 does not compile a model with a layer that XLA cannot compile, such as `StringLookup`. With a stage, such
  layers run ahead, and XLA compiles the rest.

  Args:
    model: The model.
    attribute: The attribute of the function.
  """
  if is_keras_2(model) or not _is_asked_for(model) or not _is_only_for_layers(model):
    return None
  # pylint: disable=protected-access
  refused, plain = model._jit_compile, getattr(model, attribute)
  model._jit_compile = True
  try:
    getattr(model, f"make_{attribute}")(force=True)
    return getattr(model, attribute)
  finally:
    model._jit_compile = refused
    setattr(model, attribute, plain)


def _is_asked_for(model: Any) -> bool:
  """Returns whether `compile` has been asked for XLA, also by "auto", which has it where Keras finds it useful."""
  asked = keras_compile.jit_compile_of(model)
  if asked == "auto":
    # Keras's own rule says it, for a model without layers that XLA cannot compile.
    return type(model)._resolve_auto_jit_compile(_WithoutLayers(model))
  return asked is True


def _is_only_for_layers(model: Any) -> bool:
  """Returns whether XLA is off only because of layers that it cannot compile."""
  return not (
      model.jit_compile or model.run_eagerly or config.is_op_determinism_enabled()
      or all(layer.supports_jit for layer in model._flatten_layers()))  # pylint: disable=protected-access


class _WithoutLayers:
  """What Keras's rule for `jit_compile="auto"` reads of a model."""

  def __init__(self, model: Any):
    self._distribute_strategy = model._distribute_strategy

  def _flatten_layers(self) -> tuple[Any, ...]:
    return ()


def is_keras_2(model: Any) -> bool:
  """Returns whether a model is one of Keras 2."""
  return hasattr(model, "_train_counter")


def other_backend(model: Any) -> Optional[str]:
  """Returns the name of Keras 3's backend if a model's functions are its own and not TensorFlow's; None if they are."""
  name = "tensorflow" if is_keras_2(model) else importlib.import_module("keras.src.backend.config").backend()
  return None if name == "tensorflow" else name


def takes_test_function_early(model: Any) -> bool:
  """Returns whether `evaluate` takes the model's function before it tells that it begins, as in Keras 2."""
  return is_keras_2(model)


def can_evaluate(model: Any) -> bool:
  """Returns whether a model of Keras 2 has been compiled."""
  return model.compiled_loss is not None


def validation_steps(model: Any) -> Optional[int]:
  """Returns how many steps the validation of a `fit` has; None if that is not known."""
  handler = getattr(model, "_eval_data_handler", None)
  if handler is not None:
    return handler.inferred_steps
  iterator = getattr(model, "_eval_epoch_iterator", None)
  return iterator.num_batches if iterator is not None else None
