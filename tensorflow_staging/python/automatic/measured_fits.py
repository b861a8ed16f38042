# SPDX-License-Identifier: Apache-2.0
"""Measures the batches of Keras's `fit` for `python -m tensorflow.staging compare`."""

import functools
import importlib
from collections.abc import Callable
from collections.abc import Iterable
from typing import Any

from tensorflow_staging.python.automatic import measured_run
from tensorflow_staging.python.stats import stage_stats


def callback(stages: Callable[[], Iterable[stage_stats.StageStats]]) -> Any:
  """Returns a callback that notes each batch on which a `fit` trains.

  Args:
    stages: Returns the statistics of the stages of the `fit`.
  """
  return _callback_class()(stages)


@functools.cache
def _callback_class() -> type:
  keras_callbacks = importlib.import_module("keras.src.callbacks")

  class MeasuringCallback(keras_callbacks.Callback):
    """See `callback`."""

    def __init__(self, stages: Callable[[], Iterable[stage_stats.StageStats]]):
      super().__init__()
      # So that Keras does not wait for the values of the logs.
      self._supports_tf_logs = True
      self._stages = stages

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
      measured_run.note_step(self.model, self._stages)

  return MeasuringCallback
