# SPDX-License-Identifier: Apache-2.0
"""What `run.py` puts beside Keras's sources: what Keras's tests import, the callback, and a record of the outcomes."""

import functools
import inspect
import json
import os
import pathlib
from typing import Any

import keras
import pytest
from keras.src.backend.tensorflow import trainer

_OUTCOMES = os.environ["STAGING_OUTCOMES"]
# Keras calls it for validation, which the callback of the `fit` stages.
_WITHIN_FIT = "_use_cached_eval_dataset"


def skip_if_backend(backend: str, reason: str) -> Any:
  """Returns the decorator that Keras's own file of this name has."""
  return pytest.mark.skipif(keras.backend.backend() == backend, reason=reason)


def pytest_configure(config: pytest.Config) -> None:
  for marker in ("multi_device", "requires_trainable_backend", "serial"):
    config.addinivalue_line("markers", f"{marker}: one of Keras's")
  if os.environ.get("TF_STAGING_SMART_STAGE") == "1":
    # Each `fit` has it anyway.
    for name in ("evaluate", "predict"):
      _give_callback(name)
    _note_records()


def _give_callback(name: str) -> None:
  from tensorflow_staging.python.ahead import keras_callback  # pylint: disable=g-import-not-at-top
  from tensorflow_staging.python.automatic import fit_callbacks  # pylint: disable=g-import-not-at-top
  method = getattr(trainer.TensorFlowTrainer, name)
  signature = inspect.signature(method)

  @functools.wraps(method)
  def with_callback(*args: Any, **kwargs: Any) -> Any:
    if _WITHIN_FIT in kwargs:
      return method(*args, **kwargs)
    bound = signature.bind(*args, **kwargs)
    bound.arguments["callbacks"] = fit_callbacks.added_to(
        bound.arguments.get("callbacks"), keras_callback.SmartStage, keras_callback.is_callback)
    return method(*bound.args, **bound.kwargs)

  setattr(trainer.TensorFlowTrainer, name, with_callback)


def _note_records() -> None:
  """Records how many records the steps of each `fit` have taken."""
  from tensorflow_staging.python.automatic import notices  # pylint: disable=g-import-not-at-top
  note_ended = notices.note_ended

  def note_ended_here(stages: list[Any]) -> None:
    note_ended(stages)
    _record("records", sum(stage.taken for stage in stages))

  notices.note_ended = note_ended_here


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
  if report.when == "call" or report.outcome != "passed":
    _record(report.nodeid, report.outcome)


def pytest_collectreport(report: pytest.CollectReport) -> None:
  if report.failed:
    _record(report.nodeid, "not collected")


def _record(name: str, outcome: str | int) -> None:
  with pathlib.Path(_OUTCOMES).open("a") as file:
    file.write(json.dumps([name, outcome]) + "\n")
