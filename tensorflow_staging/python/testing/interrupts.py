# SPDX-License-Identifier: Apache-2.0
"""A callback that ends a `fit` in the middle, as Ctrl-C would."""

from typing import Any
from typing import Optional

import tensorflow as tf


class Interrupts(tf.keras.callbacks.Callback):
  """Ends a `fit` with an `InterruptedError` after some steps."""

  def __init__(self, after: int):
    super().__init__()
    self._left = after

  def on_train_batch_end(self, batch: int, logs: Optional[dict[str, Any]] = None) -> None:
    self._left -= 1
    if self._left == 0:
      raise InterruptedError
