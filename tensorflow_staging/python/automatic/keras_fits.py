# SPDX-License-Identifier: Apache-2.0
"""Gives every `fit` of a program the callback `SmartStage`, or measures it, if the environment asks for it."""

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any

from tensorflow_staging.python.automatic import import_watch
from tensorflow_staging.python.automatic import setting


def watch_if_asked(new_callback: Callable[[], Any], is_callback: Callable[[Any], bool]) -> None:
  """Waits for the import of Keras, if the environment turns SmartStage on, or asks for a measurement.

  Args:
    new_callback: Returns a new callback `SmartStage`.
    is_callback: Says whether a value is one.
  """
  unneeded = (setting.Setting.UNSET.value, setting.Setting.OFF.value)
  # A value that is not allowed is an error where the first fit begins.
  if os.environ.get(setting.VARIABLE, "") in unneeded and setting.COMPARE_VARIABLE not in os.environ:
    return
  for module, class_name in import_watch.KERAS_CLASSES:
    import_watch.when_imported(module, class_name, lambda model: _replace_fit(model, new_callback, is_callback))


def _replace_fit(model: Any, new_callback: Callable[[], Any], is_callback: Callable[[Any], bool]) -> None:
  fit = model.fit
  signature = inspect.signature(fit)

  @functools.wraps(fit)
  def fit_with_callback(*args: Any, **kwargs: Any) -> Any:
    try:
      bound = signature.bind(*args, **kwargs)
    except TypeError:
      return fit(*args, **kwargs)  # Its error names what is wrong.
    # TensorFlow is complete only now.
    from tensorflow_staging.python.automatic import fit_callbacks  # pylint: disable=g-import-not-at-top
    bound.arguments["callbacks"] = fit_callbacks.added_to(
        bound.arguments.get("callbacks"), new_callback, is_callback)
    return fit(*bound.args, **bound.kwargs)

  model.fit = fit_with_callback
