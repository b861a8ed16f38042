# SPDX-License-Identifier: Apache-2.0
"""What to ask instead, for values of TensorFlow 2 that have no stage themselves."""

import sys
from typing import Any

from tensorflow_staging.python import api_name

# The packages that may have the class of a model.
_KERAS = ("keras", "tf_keras")


def hint_for(value: Any, asks: str) -> str:
  """Returns a sentence that says what has the stage of a step or a model, or an empty string.

  Args:
    value: What was asked.
    asks: The name of the function that was called with it.
  """
  if hasattr(value, "get_concrete_function") or hasattr(value, "captured_inputs"):
    return (
        f" A tf.function has no stage by itself: call step = {api_name.API}.ahead(step), train with that, and then"
        f" {asks}(step).")
  # Keras takes long to import, so who does not use it does not import it.
  models = tuple(model for name in _KERAS if (model := getattr(sys.modules.get(name), "Model", None)) is not None)
  if isinstance(value, models):
    return (
        f" A model has no stage by itself: give fit callbacks=[callback], with callback ="
        f" {api_name.API}.SmartStage(), and"
        f" then call {asks}(callback).")
  return ""
