# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.SmartStage`: the callback with which Keras's `fit` runs its input ahead."""

import importlib
import sys
from typing import Any
from typing import Optional

from tensorflow.python.framework import ops
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import api_name
from tensorflow_staging.python import uncalled
from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.ahead import eager_mode
from tensorflow_staging.python.automatic import keras_fits

_NAME = f"{api_name.API}.SmartStage"
_MODULE_OF_CLASS = "tensorflow_staging.python.ahead.callback_class"


@tf_export("staging.SmartStage")
def SmartStage(
    capacity: int = vocabulary.AUTOTUNE,
    num_threads: Optional[int] = None,
    *,
    capacity_bytes: int = 0,
    device_capacity_bytes: int = 0,
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
    device_capacity_bytes: As for `tf.staging.ahead`.
    python_ahead: As for `tf.staging.ahead`.

  Returns:
    A `tf.keras.callbacks.Callback`. It may be given to several calls of `fit` and `evaluate`, one after the other. It
    can be copied and pickled; a copy has its arguments and what the program has set on it, and no stages.

  Raises:
    TypeError: If an argument has the wrong type.
    ValueError: If an argument is out of range.
    RuntimeError: If eager execution is off, as in TensorFlow 1's root.
  """
  if not ops.executing_eagerly_outside_functions():
    eager_mode.raise_off(f"{_NAME}()", "For Keras in graph mode, see docs/tensorflow_2.md.")
  return _callback_class()(
      capacity, num_threads, capacity_bytes=capacity_bytes, device_capacity_bytes=device_capacity_bytes,
      python_ahead=python_ahead)


def is_callback(value: Any) -> bool:
  """Returns whether a value is a callback of `SmartStage`."""
  return _MODULE_OF_CLASS in sys.modules and isinstance(value, _callback_class())


def _callback_class() -> type:
  """Returns the class of the callback. Keras takes long to import, so who does not use it does not import it."""
  return importlib.import_module(_MODULE_OF_CLASS).SmartStageCallback


uncalled.refuse_methods(SmartStage, _NAME, ("set_model", "set_params"))
# This module is imported with TensorFlow.
keras_fits.watch_if_asked(SmartStage, is_callback)
