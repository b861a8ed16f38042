# SPDX-License-Identifier: Apache-2.0
"""What the callback `tf.staging.SmartStage` puts in the place of a model's train or test function."""

import sys
from collections.abc import Callable
from typing import Any

from tensorflow.python.framework import errors

from tensorflow_staging.python.ahead import ahead
from tensorflow_staging.python.ahead import keras_model
from tensorflow_staging.python.ahead import known_length
from tensorflow_staging.python.ahead import predict_data

_WITH_CALLBACKS = ("fit", "evaluate", "predict")


class ModelStep:
  """What stands in the place of a model's train or test function while the callback is on."""

  def __init__(self, callback: Any, attribute: str, plain: Callable[..., Any], step: ahead.AheadStep):
    """Creates it.

    Args:
      callback: The callback.
      attribute: The attribute of the model that has the function.
      plain: The model's own function.
      step: The staged step.
    """
    self.callback = callback
    self._attribute = attribute
    self.plain = plain
    self._step = step
    if keras_model.gets_elements(callback.model, attribute):
      self._staged = self._predict
    else:
      self._staged = keras_model.with_traced_part(plain, step)
    self._history = getattr(callback.model, "history", None)
    self._is_over = False

  def __call__(self, iterator: Any) -> Any:
    model = self.callback.model
    history = getattr(model, "history", None)
    if history is not self._history and not self._is_over:
      if runs_with(self.callback):
        self._history = history  # A callback has evaluated or predicted.
      else:
        # An exception has ended the `fit` with the callback, which Keras does not tell. This is another one.
        self.restore()
        if not self._is_over:
          return self.plain(predict_data.read(iterator))
    if self._attribute == "train_function" and self.callback.needs_batch():
      # Without a callback that has batch hooks, `fit` calls none.
      caller = sys._getframe(1)  # pylint: disable=protected-access
      if caller.f_code.co_name == "fit" and "step" in caller.f_locals:
        self.callback.note_batch(caller.f_locals["step"])
    try:
      return self._staged(iterator)
    except (errors.OutOfRangeError, StopIteration):
      raise
    except BaseException:
      self.restore()
      raise

  def _predict(self, data: Any) -> Any:
    iterator = predict_data.iterator_of(data)
    if iterator is None:
      return self.plain(data)  # Of `predict_on_batch`, for example.
    count = known_length.take(iterator, len(data)) if len(data) > 1 else 1
    if count is None:
      return keras_model.joined(self._predict_singly(iterator, len(data)))
    if count == 0:
      raise StopIteration
    return self._step(iterator, count)

  def _predict_singly(self, iterator: Any, most: int) -> list[Any]:
    """Returns the predictions for each of the next elements, at least one, of which there may be fewer than `most`."""
    predictions = [self._step(iterator, 1)]
    try:
      while len(predictions) < most:
        predictions.append(self._step(iterator, 1))
    except (errors.OutOfRangeError, StopIteration):
      pass
    return predictions

  def restore(self) -> None:
    """Gives the model its own function back, or keeps this and reads nothing ahead, so that seeded draws go on."""
    self._step.stop()
    if self._step.draws_with_seeds():
      self._is_over = True
      self._step.limit = 0
    elif getattr(self.callback.model, self._attribute, None) is self:
      setattr(self.callback.model, self._attribute, self.plain)


def runs_with(callback: Any) -> bool:
  """Returns whether a method of Keras that has a callback, such as `fit`, calls the caller."""
  frame = sys._getframe()  # pylint: disable=protected-access
  while frame is not None:
    callbacks = frame.f_locals.get("callbacks") if frame.f_code.co_name in _WITH_CALLBACKS else None
    if any(given is callback for given in getattr(callbacks, "callbacks", ())):
      return True
    frame = frame.f_back
  return False
