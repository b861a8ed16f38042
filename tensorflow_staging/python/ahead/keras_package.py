# SPDX-License-Identifier: Apache-2.0
"""Which Keras a program uses: from TensorFlow 2.16 on there may be two, `keras` and `tf_keras`, which is Keras 2."""

import importlib
import importlib.util
import os
import sys
from typing import Any

# With this variable, `tf.keras` is tf_keras.
_IS_LEGACY = (
    os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true")
    and importlib.util.find_spec("tf_keras") is not None)


def callbacks() -> Any:
  """Returns the module with the class of Keras's callbacks. Importing Keras takes long."""
  is_only_one = "tf_keras.src" in sys.modules and "keras.src" not in sys.modules
  return importlib.import_module(f"{'tf_keras' if _IS_LEGACY or is_only_one else 'keras'}.src.callbacks")
