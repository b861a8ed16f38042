# SPDX-License-Identifier: Apache-2.0
"""Gives every `fit` of a program the callback `tf.staging.SmartStage`, or measures it, if the environment asks for it.

Keras is not imported for that: when something imports it, the method is replaced.
"""

import functools
import importlib.abc
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

from tensorflow_staging.python.automatic import setting

# The module with the class of all models.
_MODULE = "keras.src.engine.training"


def watch_if_asked(new_callback: Callable[[], Any], is_callback: Callable[[Any], bool]) -> None:
  """Waits for the import of Keras, if the environment turns SmartStage on, or asks for a measurement.

  Args:
    new_callback: Returns a new callback `tf.staging.SmartStage`.
    is_callback: Says whether a value is one.
  """
  # Another value is an error where a session or a step begins.
  if os.environ.get(setting.VARIABLE) != setting.Setting.ON.value and setting.COMPARE_VARIABLE not in os.environ:
    return
  if hasattr(sys.modules.get(_MODULE), "Model"):
    _replace_fit(sys.modules[_MODULE], new_callback, is_callback)
  else:
    sys.meta_path.insert(0, _Finder(lambda module: _replace_fit(module, new_callback, is_callback)))


class _Finder(importlib.abc.MetaPathFinder):
  """Finds one module as without it, and lets its loader replace a method."""

  def __init__(self, replace: Callable[[Any], None]):
    self._replace = replace

  def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
    del path, target
    if fullname != _MODULE or self not in sys.meta_path:
      return None
    sys.meta_path.remove(self)
    spec = importlib.util.find_spec(fullname)
    if spec is not None and spec.loader is not None:
      execute = spec.loader.exec_module

      def execute_and_replace(module: Any) -> None:
        execute(module)
        self._replace(module)

      spec.loader.exec_module = execute_and_replace
    return spec


def _replace_fit(module: Any, new_callback: Callable[[], Any], is_callback: Callable[[Any], bool]) -> None:
  fit = module.Model.fit
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

  module.Model.fit = fit_with_callback

