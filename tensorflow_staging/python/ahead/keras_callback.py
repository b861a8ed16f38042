# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.SmartStage`: the callback with which Keras's `fit` runs its input ahead."""

import functools
import importlib
import sys
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import Optional

from tensorflow.python.framework import errors
from tensorflow.python.framework import ops
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.ahead import ahead
from tensorflow_staging.python.ahead import step_report
from tensorflow_staging.python.automatic import keras_fits

_WITH_CALLBACKS = ("fit", "evaluate", "predict")


@tf_export("staging.SmartStage")
def SmartStage(
    capacity: int = vocabulary.AUTOTUNE,
    num_threads: Optional[int] = None,
    *,
    capacity_bytes: int = 0,
    python_ahead: bool = False,
) -> Any:
  """Returns a callback with which `fit` and `evaluate` run their input ahead, as `tf.staging.ahead` does.

  What the model computes of its data without a variable runs ahead of the training step: its preprocessing layers, for
  example. The model does not change, and neither do losses, metrics and weights. `fit` stages its validation, too.

  For example:

  ```python
  import tensorflow as tf

  words = tf.keras.Input((), dtype=tf.string)
  ids = tf.keras.layers.Hashing(100)(words)
  prices = tf.keras.layers.Dense(1)(tf.keras.layers.Embedding(100, 4)(ids))
  model = tf.keras.Model(words, prices)
  model.compile("adam", "mse")
  data = tf.data.Dataset.from_tensor_slices((["a", "b", "c", "d"], [1.0, 2.0, 3.0, 4.0])).batch(2)
  model.fit(data, epochs=2, callbacks=[tf.staging.SmartStage()])
  ```

  A model of which nothing can run ahead trains as without the callback; a warning in one line says why.

  Args:
    capacity: As for `tf.staging.ahead`.
    num_threads: As for `tf.staging.ahead`.
    capacity_bytes: As for `tf.staging.ahead`.
    python_ahead: As for `tf.staging.ahead`.

  Returns:
    A `tf.keras.callbacks.Callback`. It may be given to several calls of `fit` and `evaluate`, one after the other.

  Raises:
    TypeError: If an argument has the wrong type.
    ValueError: If an argument is out of range.
    RuntimeError: If eager execution is off, as in TensorFlow 1's root.
  """
  if not ops.executing_eagerly_outside_functions():
    raise RuntimeError(
        "tf.staging.SmartStage() is for Keras in TensorFlow 2, and eager execution is off. Set the environment variable"
        " TF_API_VERSION=2 before the program imports TensorFlow. For Keras in graph mode, see docs/tensorflow_2.md.")
  options = {"capacity": capacity, "num_threads": num_threads, "capacity_bytes": capacity_bytes,
             "python_ahead": python_ahead}
  ahead.ahead(lambda: None, **options)  # Checks the arguments.
  return _callback_class()(options)


def is_callback(value: Any) -> bool:
  """Returns whether a value is a callback of `SmartStage`."""
  return _callback_class.cache_info().currsize > 0 and isinstance(value, _callback_class())


class _ModelStep:
  """What stands in the place of a model's train or test function while the callback is on."""

  def __init__(self, callback: Any, attribute: str, plain: Callable[..., Any], step: ahead.AheadStep):
    self._callback = callback
    self._attribute = attribute
    self.plain = plain
    self._step = step
    self._history = getattr(callback.model, "history", None)
    self._is_over = False

  def __call__(self, iterator: Any) -> Any:
    model = self._callback.model
    history = getattr(model, "history", None)
    if history is not self._history and not self._is_over:
      if _runs_with(self._callback):
        self._history = history  # A callback has evaluated or predicted.
      else:
        # An exception has ended the `fit` with the callback, which Keras does not tell. This is another one.
        self.restore()
        if not self._is_over:
          return self.plain(iterator)
    try:
      return self._step(iterator)
    except (errors.OutOfRangeError, StopIteration):
      raise
    except BaseException:
      self.restore()
      raise

  def restore(self) -> None:
    """Gives the model its own function back, or keeps this and reads nothing ahead, so that seeded draws go on."""
    self._step.stop()
    if self._step.draws_with_seeds():
      self._is_over = True
      self._step.limit = 0
    elif getattr(self._callback.model, self._attribute, None) is self:
      setattr(self._callback.model, self._attribute, self.plain)


def _log_ended(steps: Sequence[ahead.AheadStep]) -> None:
  """Logs what the stages of a `fit` have done and gained, with the level INFO, as a session does."""
  from tensorflow_staging.python.stats import ended_stages  # pylint: disable=g-import-not-at-top
  ended_stages.log_stages(ended_stages.of_steps(steps))


def _runs_with(callback: Any) -> bool:
  """Returns whether a method of Keras that has a callback, such as `fit`, calls the caller."""
  frame = sys._getframe()  # pylint: disable=protected-access
  while frame is not None:
    callbacks = frame.f_locals.get("callbacks") if frame.f_code.co_name in _WITH_CALLBACKS else None
    if any(given is callback for given in getattr(callbacks, "callbacks", ())):
      return True
    frame = frame.f_back
  return False


@functools.cache
def _callback_class() -> type:
  """Returns the class of the callback. Keras takes long to import, so who does not use it does not import it."""
  keras_callbacks = importlib.import_module("keras.src.callbacks")

  class SmartStageCallback(keras_callbacks.Callback, ahead.OwnsSteps):
    """See `tf.staging.SmartStage`."""

    def __init__(self, options: dict[str, Any]):
      super().__init__()
      self._supports_tf_logs = True
      self._options = options
      # By attribute of the model: the step that runs ahead.
      self._steps: dict[str, ahead.AheadStep] = {}
      self._is_new_epoch = False
      # Called at the end of `fit` with the steps that it has called.
      self.note_ended: Callable[[Sequence[ahead.AheadStep]], None] = _log_ended

    def report(self) -> step_report.StepReport:
      """Returns what runs ahead of the model's functions; see `tf.staging.explain`."""
      return step_report.StepReport(
          tuple(divided for step in self._steps.values() for divided in step.report().steps))

    def steps(self) -> list[ahead.AheadStep]:
      return list(self._steps.values())

    def set_model(self, model: Any) -> None:
      super().set_model(model)
      # `evaluate` takes its function before it tells that it begins.
      if not isinstance(getattr(model, "test_function", None), _ModelStep) and model.compiled_loss is not None:
        model.make_test_function()
      self._wrap("test_function", "evaluate")

    def on_train_begin(self, logs: Optional[dict[str, Any]] = None) -> None:
      for step in self._steps.values():
        step.count_anew()
      self._wrap("train_function", "train")

    def on_epoch_begin(self, epoch: int, logs: Optional[dict[str, Any]] = None) -> None:
      # One iterator may serve several epochs, and training may end with any of them.
      self._is_new_epoch = True

    def on_test_begin(self, logs: Optional[dict[str, Any]] = None) -> None:
      handler = getattr(self.model, "_eval_data_handler", None)  # That of the validation in `fit`.
      steps = self._steps_to_come()
      if self._trains():
        steps = handler.inferred_steps if handler is not None else None
      self._expect("test_function", steps)

    def on_predict_begin(self, logs: Optional[dict[str, Any]] = None) -> None:
      self._wrap("predict_function", "predict")
      self._expect("predict_function", None if self._trains() else self._steps_to_come())

    def on_train_batch_begin(self, batch: int, logs: Optional[dict[str, Any]] = None) -> None:
      # Another callback may have compiled the model.
      if not isinstance(self.model.train_function, _ModelStep):
        self._wrap("train_function", "train")
      if self._is_new_epoch:
        self._is_new_epoch = False
        self._expect("train_function", self._steps_to_come())

    def on_train_end(self, logs: Optional[dict[str, Any]] = None) -> None:
      self._restore()
      self.note_ended(self.steps())

    def on_test_end(self, logs: Optional[dict[str, Any]] = None) -> None:
      if "test_function" in self._steps:
        self._steps["test_function"].limit = None
      # In `fit`, its end is the end.
      if not self._trains():
        self._restore()

    def on_predict_end(self, logs: Optional[dict[str, Any]] = None) -> None:
      if not self._trains():
        self._restore()

    def _steps_to_come(self) -> Optional[int]:
      return (self.params or {}).get("steps")

    def _trains(self) -> bool:
      return isinstance(self.model.train_function, _ModelStep)

    def _expect(self, attribute: str, steps: Optional[int]) -> None:
      if attribute in self._steps:
        self._steps[attribute].expect(steps)

    def _wrap(self, attribute: str, name: str) -> None:
      plain = getattr(self.model, attribute, None)
      if isinstance(plain, _ModelStep):
        plain = plain.plain
      if plain is None:
        return
      step = self._steps.get(attribute)
      if step is None:
        step = self._steps[attribute] = ahead.ahead(plain, name=name, **self._options)
      elif step.step is not plain:
        step.replace_step(plain)
      setattr(self.model, attribute, _ModelStep(self, attribute, plain, step))

    def _restore(self) -> None:
      for attribute in ("train_function", "test_function", "predict_function"):
        wrapped = getattr(self.model, attribute, None)
        if isinstance(wrapped, _ModelStep):
          wrapped.restore()

  return SmartStageCallback


# This module is imported with TensorFlow.
keras_fits.watch_if_asked(SmartStage, is_callback)
