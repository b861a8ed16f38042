# SPDX-License-Identifier: Apache-2.0
"""Measures the batches of Keras's `fit` for the command `compare`."""

import functools
from collections.abc import Callable
from collections.abc import Iterable
from typing import Any

from tensorflow_staging.python.ahead import keras_package
from tensorflow_staging.python.automatic import measured_run
from tensorflow_staging.python.stats import counted_stages


def callback(clocks: measured_run.Clocks, stages: Callable[[], Iterable[counted_stages.StageStats]]) -> Any:
  """Returns a callback that notes each batch on which a `fit` trains.

  Args:
    clocks: What notes them.
    stages: Returns the statistics of the stages of the `fit`.
  """
  return _callback_class()(clocks, stages)


@functools.cache
def _callback_class() -> type:

  class MeasuringCallback(keras_package.callbacks().Callback):
    """See `callback`."""

    def __init__(self, clocks: measured_run.Clocks, stages: Callable[[], Iterable[counted_stages.StageStats]]):
      super().__init__()
      # So that Keras does not wait for the values of the logs.
      self._supports_tf_logs = True
      self._clocks = clocks
      self._stages = stages

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
      self._clocks.note(self.model, self._stages, is_fit=True)

  return MeasuringCallback
