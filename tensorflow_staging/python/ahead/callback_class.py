# SPDX-License-Identifier: Apache-2.0
"""The class of the callback that `tf.staging.SmartStage()` returns. Only its use imports Keras, which takes long."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import Optional

from tensorflow.python.platform import tf_logging

from tensorflow_staging.python import api_name
from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.ahead import ahead
from tensorflow_staging.python.ahead import keras_model
from tensorflow_staging.python.ahead import keras_package
from tensorflow_staging.python.ahead import model_step
from tensorflow_staging.python.ahead import predict_data
from tensorflow_staging.python.ahead import step_function
from tensorflow_staging.python.ahead import step_report

_REPLACED = (
    f"another callback {api_name.API}.SmartStage() after it in the same list stages the model; give one of them alone")
_OTHER_BACKEND = "Keras's backend is {}, and only functions of TensorFlow have stages"


_BATCH_HOOKS = ("on_batch_begin", "on_batch_end", "on_train_batch_begin", "on_train_batch_end")


def _log_ended(steps: Sequence[ahead.AheadStep]) -> None:
  """Logs what the stages of a `fit` have done and gained, with the level INFO, as a session does."""
  from tensorflow_staging.python.stats import ended_stages  # pylint: disable=g-import-not-at-top
  ended_stages.log_stages(ended_stages.of_steps(steps))


class SmartStageCallback(keras_package.callbacks().Callback, ahead.OwnsSteps):
  """See `tf.staging.SmartStage`."""

  def __init__(
      self, capacity: int = vocabulary.AUTOTUNE, num_threads: Optional[int] = None, *, capacity_bytes: int = 0,
      device_capacity_bytes: int = 0, python_ahead: bool = False):
    """Creates the callback; see `tf.staging.SmartStage` for the arguments."""
    super().__init__()
    self._supports_tf_logs = True
    self._options = {
        "capacity": capacity, "num_threads": num_threads, "capacity_bytes": capacity_bytes,
        "device_capacity_bytes": device_capacity_bytes, "python_ahead": python_ahead}
    ahead.check_options(**self._options)
    # Called at the end of `fit` with the steps that it has called.
    self.note_ended: Callable[[Sequence[ahead.AheadStep]], None] = _log_ended
    self.__dict__.update(self._unused_state())

  def _unused_state(self) -> dict[str, Any]:
    """Returns the attributes of a callback that no model has used, but for its arguments."""
    # _steps: those that run ahead, by attribute of the model; _plain: the model's own functions of which they are made.
    # _why_idle: why the callback does nothing at all; None if it does.
    return {
        "model": None, "_model": None, "params": None, "validation_data": None, "_steps": {}, "_plain": {},
        "_is_new_epoch": False, "_why_idle": None
    }

  def __getstate__(self) -> dict[str, Any]:
    """Returns what a copy has. The threads and the records of a stage cannot be copied, and are those of one model."""
    return self.__dict__ | self._unused_state()

  def report(self) -> step_report.StepReport:
    """Returns what runs ahead of the model's functions; see `tf.staging.explain`."""
    if self._why_idle is not None:
      return step_report.StepReport((step_report.DividedStep("fit", self._why_idle),))
    return step_report.StepReport(
        tuple(divided for step in self._steps.values() for divided in step.report().steps))

  def steps(self) -> list[ahead.AheadStep]:
    return list(self._steps.values())

  def why_no_stage(self) -> str:
    if self._why_idle is not None:
      return self._why_idle
    if self.model is None:
      return "no fit, evaluate or predict with the callback"
    reasons = [f"'{step.__name__}' runs without one: {step.why_not}" for step in self.steps() if step.why_not]
    return "; ".join(reasons) or "no step has run with the callback"

  def note_replaced(self) -> None:
    """Says once that another callback of the same `fit` stages it."""
    self._note_idle(_REPLACED)

  def _note_idle(self, why: str) -> None:
    if self._why_idle != why:
      self._why_idle = why
      tf_logging.warning("A callback %s.SmartStage() does nothing: %s.", api_name.API, why)

  def _may_stage_again(self) -> None:
    """Notes that a method of Keras begins, which may have no other such callback."""
    if self._why_idle == _REPLACED:
      self._why_idle = None

  def set_model(self, model: Any) -> None:
    super().set_model(model)
    if not keras_model.takes_test_function_early(model):
      return
    if not isinstance(getattr(model, "test_function", None), model_step.ModelStep) and keras_model.can_evaluate(model):
      model.make_test_function()
    self._wrap("test_function", "evaluate")

  def on_train_begin(self, logs: Optional[dict[str, Any]] = None) -> None:
    self._may_stage_again()
    for step in self._steps.values():
      step.count_anew()
    self._wrap("train_function", "train")

  def on_epoch_begin(self, epoch: int, logs: Optional[dict[str, Any]] = None) -> None:
    # One iterator may serve several epochs, and training may end with any of them.
    self._is_new_epoch = True

  def on_test_begin(self, logs: Optional[dict[str, Any]] = None) -> None:
    if not self._trains():
      current = self.model.test_function
      self._may_stage_again()
      if isinstance(current, model_step.ModelStep) and current.callback is not self:
        self.note_replaced()
    if not keras_model.takes_test_function_early(self.model):
      self._wrap("test_function", "evaluate")
    self._expect(
        "test_function", keras_model.validation_steps(self.model) if self._trains() else self._steps_to_come())

  def on_predict_begin(self, logs: Optional[dict[str, Any]] = None) -> None:
    self._wrap("predict_function", "predict")
    steps = None if self._trains() else self._steps_to_come()
    is_staged = isinstance(self.model.predict_function, model_step.ModelStep)
    if is_staged and keras_model.gets_elements(self.model, "predict_function"):
      predict_data.leave_unread()
      # A call reads several.
      steps = steps and -(-steps // self.model.steps_per_execution)
    self._expect("predict_function", steps)

  def on_train_batch_begin(self, batch: int, logs: Optional[dict[str, Any]] = None) -> None:
    # Another callback may have compiled the model, which it can only do where batch hooks are called.
    if not isinstance(self.model.train_function, model_step.ModelStep):
      self._wrap("train_function", "train")
    if self.needs_batch():
      self.note_batch(batch)

  def needs_batch(self) -> bool:
    """Returns whether it has to know, before the next step, which batch of the epoch that is."""
    step = self._steps.get("train_function")
    # The call that makes variables from the data reads nothing ahead, and may be several steps.
    return self._is_new_epoch or (step is not None and step.why_not == step_function.FIRST_CALL)

  def note_batch(self, batch: int) -> None:
    """Notes that the next step is that of a batch, the number of which begins with 0 in each epoch."""
    self._is_new_epoch = False
    steps = self._steps_to_come()
    self._expect("train_function", None if steps is None else steps - batch)

  def _implements_train_batch_hooks(self) -> bool:
    """Returns whether `fit` has to call the batch hooks, those of all callbacks, for this one: for a subclass's."""
    # `ModelStep` says which batch it is.
    return any(getattr(type(self), name) is not getattr(SmartStageCallback, name) for name in _BATCH_HOOKS)

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
    return isinstance(self.model.train_function, model_step.ModelStep)

  def _expect(self, attribute: str, steps: Optional[int]) -> None:
    if attribute in self._steps:
      self._steps[attribute].expect(steps)

  def _wrap(self, attribute: str, name: str) -> None:
    backend = keras_model.other_backend(self.model)
    if backend is not None:
      self._note_idle(_OTHER_BACKEND.format(backend))
      return
    plain = getattr(self.model, attribute, None)
    if isinstance(plain, model_step.ModelStep):
      if plain.callback is not self and model_step.runs_with(plain.callback):
        plain.callback.note_replaced()
      plain = plain.plain
    if plain is None:
      return
    step = self._steps.get(attribute)
    traced = keras_model.traced_part(plain)
    gets_elements = keras_model.gets_elements(self.model, attribute)
    calls_several = (
        not gets_elements and not self.model.run_eagerly and keras_model.calls_several_steps(self.model, plain))
    # Made anew for a new function only, since a trace takes long.
    if step is None or self._plain.get(attribute) is not plain:
      self._plain[attribute] = plain
      compiled = keras_model.compiled_by_xla(self.model, attribute)
      staged = compiled or plain
      if gets_elements:
        staged = predict_data.reading(staged, self.model.run_eagerly)
        traced = predict_data.reading(plain, self.model.run_eagerly)
      else:
        staged = (
            keras_model.several_steps(staged, self.model.steps_per_execution)
            if calls_several else keras_model.traced_part(staged))
      if step is None:
        step = self._steps[attribute] = ahead.ahead(staged, name=name, **self._options)
      else:
        step.replace_step(staged)
      step.unstaged = None if compiled is None and not calls_several else traced
    setattr(self.model, attribute, model_step.ModelStep(self, attribute, plain, step))

  def _restore(self) -> None:
    for attribute in ("train_function", "test_function", "predict_function"):
      wrapped = getattr(self.model, attribute, None)
      if isinstance(wrapped, model_step.ModelStep):
        wrapped.restore()
